// A file whose bytes are computed, on an emulated drive: whole models can be read that no disk
// holds. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/emulated_drive.h"
#include "io/file.h"

namespace sluice {

// The bytes of one file. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; the range lies within the source.
  virtual Status fill(uint64_t offset, std::span<std::byte> out) const = 0;
};

// Reads of whole pages take the time of the drive; read_at() takes none, like a page cache that
// has everything.
class VirtualFile final : public File {
 public:
  // With several drives each holds all of the bytes (a mirror), and each copy() reads from one.
  // `drives` is not empty.
  static FilePtr make(std::string path, std::shared_ptr<const ByteSource> source,
                      const std::vector<std::shared_ptr<EmulatedDrive>>& drives);

  bool direct() const override { return true; }
  size_t n_copies() const override { return copies_.empty() ? 1 : copies_.size(); }
  const File& copy(size_t index) const override {
    return copies_.empty() ? *this : static_cast<const File&>(*copies_[index]);
  }
  Status read_pages(uint64_t begin, uint64_t needed_bytes,
                    std::span<std::byte> hull) const override;

 protected:
  Status read_bytes(uint64_t offset, std::span<std::byte> out) const override;

 private:
  VirtualFile(std::string path, std::shared_ptr<const ByteSource> source,
              std::shared_ptr<EmulatedDrive> drive);
  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<EmulatedDrive> drive_;
  std::vector<std::unique_ptr<const VirtualFile>> copies_;  // of a mirror, else none
};

}  // namespace sluice
