#include "make_slice/payload.h"

#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "base/xxh3.h"
#include "format/checkpoint.h"
#include "format/fingerprint.h"
#include "format/generated_model.h"
#include "format/pack_codec.h"
#include "format/pack_layout.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace sluice::slice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
constexpr uint64_t kHashBytes = uint64_t{256} << 10;  // stays in the cache between fill and hash
constexpr int kThreads = 2;

// Calls work(i) for 0..n-1 on kThreads threads, until one fails; returns the first error.
Status for_each(uint64_t n, const std::function<Status(uint64_t)>& work) {
  std::atomic<uint64_t> next{0};
  Mutex mutex;
  std::optional<Error> error;
  const auto run = [&] {
    for (uint64_t i = next++; i < n; i = next++) {
      const Status status = work(i);
      if (status.ok()) continue;
      const Lock lock(mutex);
      if (!error) error = status.error();
      next = n;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
  if (error) return *error;
  return Ok{};
}

Error write_error(const fs::path& path, const std::string& why) {
  return Error{Code::kIo, "cannot write " + path.string() + ": " + why +
                              "; free some room or lower --layers or --experts"};
}

// Past the page cache where the file system can: a slice is larger than memory.
int open_to_write(const fs::path& path) {
#ifdef O_DIRECT
  const int direct = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  if (direct >= 0) return direct;
#endif
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

Status write_all(int fd, const fs::path& path, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return write_error(path, std::generic_category().message(n < 0 ? errno : ENOSPC));
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return Ok{};
}

}  // namespace

PayloadWriter::PayloadWriter(uint64_t seed) : weights_(std::make_shared<GeneratedWeights>(seed)) {}

Status PayloadWriter::write(const fs::path& path) const {
  TRY(FilePtr file, File::open(path, Direct::kOff));
  const uint64_t size = file->size();
  TRY(const auto source, generated_source(weights_, std::move(file)));
  const UniqueFd fd(open_to_write(path));
  if (fd.get() < 0) return write_error(path, std::generic_category().message(errno));
  TRY_OK(for_each((size + kPieceBytes - 1) / kPieceBytes, [&](uint64_t piece) -> Status {
    thread_local const AlignedBuffer buffer(kPieceBytes);
    const uint64_t offset = piece * kPieceBytes;
    const uint64_t bytes = std::min(kPieceBytes, size - offset);
    TRY_OK(source->fill(offset, buffer.bytes().first(bytes)));
    // Direct writes are of whole pages; what the last one has too much is cut off below.
    const uint64_t whole = round_up(bytes, kPageBytes);
    std::ranges::fill(buffer.bytes().subspan(bytes, whole - bytes), std::byte{0});
    return write_all(fd.get(), path, offset, buffer.bytes().first(whole));
  }));
  std::error_code failed;
  fs::resize_file(path, size, failed);
  if (failed) return write_error(path, failed.message());
  return Ok{};
}

Result<fs::path> PayloadWriter::write_pack_head(const fs::path& directory) const {
  TRY(const Checkpoint checkpoint, Checkpoint::open(directory, Direct::kOff));
  TRY(std::string digits, fingerprint(checkpoint));
  PackLayout layout = plan_pack(checkpoint, std::move(digits));
  const fs::path path = directory / ".sluice" / kPackName;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::remove(path, failed);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0) return write_error(path, std::generic_category().message(errno));
  fs::resize_file(path, layout.file_bytes, failed);
  if (failed) return write_error(path, failed.message());
  TRY_OK(write_all(fd.get(), path, 0, encode_pack_header(layout)));
  // Without checksums so far: enough to say which byte is what.
  TRY_OK(write_all(fd.get(), path, layout.table_offset, encode_pack_table(layout)));

  TRY(FilePtr file, File::open(path, Direct::kOff));
  TRY(const auto source, generated_source(weights_, std::move(file)));
  std::vector<PackTensor*> tensors;
  for (PackGroup& group : layout.groups) {
    for (PackTensor& tensor : group.tensors) tensors.push_back(&tensor);
  }
  TRY_OK(for_each(tensors.size(), [&](uint64_t i) -> Status {
    std::vector<std::byte> buffer(kHashBytes);
    Xxh3 hash;
    for (uint64_t done = 0; done < tensors[i]->bytes; done += kHashBytes) {
      const auto piece = std::span(buffer).first(std::min(kHashBytes, tensors[i]->bytes - done));
      TRY_OK(source->fill(tensors[i]->offset + done, piece));
      hash.update(piece);
    }
    tensors[i]->checksum = hash.digest();
    return Ok{};
  }));
  const PackBytes table = encode_pack_table(layout);
  TRY_OK(write_all(fd.get(), path, layout.table_offset, table));
  TRY_OK(write_all(fd.get(), path, layout.table_offset + layout.table_bytes,
                   encode_pack_footer(layout, table)));
  return path;
}

}  // namespace sluice::slice
