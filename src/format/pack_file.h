// A complete int8 pack opened for reading: header, table and footer are checked at open, payload
// by whoever reads it. Immutable after open; thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "format/pack_layout.h"
#include "io/file.h"

namespace sluice {

class PackFile {
 public:
  // `layout` is what plan_pack says for the checkpoint at hand. Errors name the file and the cure:
  // kIo (missing, unreadable), kCorrupt (truncated, damaged, of another checkpoint), kUnsupported
  // (another version).
  static Result<std::unique_ptr<PackFile>> open(const std::filesystem::path& path,
                                                PackLayout layout, Direct direct,
                                                const OpenFile& open_file = File::open);

  const File& file() const { return *file_; }
  const PackLayout& layout() const { return layout_; }  // with the checksums of the table
  const PackTensor* tensor(LayerId layer, Role role) const {
    return layout_.layer(layer).find(role);
  }

  // kCorrupt names file and tensor unless `bytes` has the tensor's checksum.
  Status check(const PackTensor& tensor, std::span<const std::byte> bytes) const;

 private:
  explicit PackFile(FilePtr file, PackLayout layout);
  FilePtr file_;
  PackLayout layout_;
};

// Reads the tensor from `file` in pieces through `buffer` (at least two pages) and says whether it
// has its checksum.
Result<bool> has_checksum(const File& file, const PackTensor& tensor, const AlignedBuffer& buffer,
                          std::atomic<uint64_t>& bytes_read);

// The end of a sentence about a pack that cannot be used.
constexpr const char* kPackCure = ": run sluice convert to make it again";

}  // namespace sluice
