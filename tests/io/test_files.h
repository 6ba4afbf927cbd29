// Files for tests of reads: bytes in memory behind a hook that may delay or fail a read, and a file
// whose descriptor is not the one that its bytes come from.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/file.h"

namespace sluice::testing {

inline std::string pattern(size_t bytes, uint32_t seed = 1) {
  std::string text(bytes, '\0');
  uint32_t state = seed;
  for (char& c : text) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

// One page read that a hook may answer in the file's place.
struct PageRead {
  uint64_t begin;
  uint64_t needed_bytes;
};
using ReadHook = std::function<std::optional<int>(const PageRead&)>;  // errno, or nothing: read on

// Bytes in memory, read by read_pages only; thread-safe if the hook is.
class MemoryFile : public File {
 public:
  MemoryFile(std::string path, std::string content, uint64_t drive, ReadHook hook = {})
      : File(std::move(path), content.size(), drive),
        content_(std::move(content)),
        hook_(std::move(hook)) {}

  const std::string& content() const { return content_; }
  void end_at(uint64_t bytes) { end_ = bytes; }  // as if another program had cut the file
  bool direct() const override { return true; }
  Status read_pages(uint64_t begin, uint64_t needed_bytes,
                    std::span<std::byte> hull) const override {
    if (hook_) {
      if (const std::optional<int> number = hook_({begin, needed_bytes})) {
        return read_error(begin, *number);
      }
    }
    const uint64_t end = std::min<uint64_t>(end_, content_.size());
    if (begin + needed_bytes > end) return ends_early(end, begin, needed_bytes);
    const uint64_t bytes = std::min<uint64_t>(hull.size(), end - begin);
    std::memcpy(hull.data(), content_.data() + begin, bytes);
    return Ok{};
  }

 protected:
  Status read_bytes(uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), content_.data() + offset, out.size());
    return Ok{};
  }

 private:
  std::string content_;
  ReadHook hook_;
  std::atomic<uint64_t> end_ = ~uint64_t{0};
};

// The same, with a descriptor that a ring may try first.
class DescriptorFile final : public MemoryFile {
 public:
  DescriptorFile(std::string path, std::string content, uint64_t drive, int fd, ReadHook hook = {})
      : MemoryFile(std::move(path), std::move(content), drive, std::move(hook)), fd_(fd) {}
  int page_fd() const override { return fd_; }

 private:
  int fd_;
};

// A hook that holds every read until it is opened, and notes their order.
class Gate {
 public:
  std::optional<int> pass(const PageRead& read) {
    std::unique_lock lock(mutex_);
    begun_.push_back(read.begin);
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return std::nullopt;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for(size_t n_begun) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= n_begun; });
  }
  std::vector<uint64_t> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> begun_;
  bool open_ = false;
};

}  // namespace sluice::testing
