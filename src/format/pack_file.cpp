#include "format/pack_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/xxh3.h"
#include "format/pack_codec.h"

namespace sluice {
namespace {

Error unusable(const File& file, Code code, const std::string& why) {
  return Error{code, file.path() + " " + why + kPackCure};
}

Result<PackBytes> read_bytes(const File& file, uint64_t offset, uint64_t bytes) {
  PackBytes out(bytes);
  TRY_OK(file.read_at(offset, out));
  return out;
}

// Fills the checksums of `layout` from the table of `file`.
Status read_table(const File& file, PackLayout& layout) {
  TRY(const PackBytes table, read_bytes(file, layout.table_offset, layout.table_bytes));
  TRY(const PackBytes footer,
      read_bytes(file, layout.table_offset + layout.table_bytes, kPackFooterBytes));
  bool right = std::ranges::equal(footer, encode_pack_footer(layout, table));
  for (PackGroup& group : layout.groups) {
    const auto entries =
        std::span(table).subspan(group.entries_offset - layout.table_offset, group.entries_bytes);
    right = right && take_pack_checksums(entries, group);
  }
  right = right && std::ranges::equal(table, encode_pack_table(layout));
  if (right) return Ok{};
  return unusable(file, Code::kCorrupt, "has a damaged table at its end");
}

}  // namespace

PackFile::PackFile(FilePtr file, PackLayout layout)
    : file_(std::move(file)), layout_(std::move(layout)) {}

Result<std::unique_ptr<PackFile>> PackFile::open(const std::filesystem::path& path,
                                                 PackLayout layout, Direct direct,
                                                 const OpenFile& open_file) {
  TRY(FilePtr opened, open_file(path, direct));
  const File& file = *opened;
  if (file.size() < kPackHeaderBytes) {
    return unusable(file, Code::kCorrupt, "is too short for an int8 pack");
  }
  TRY(const PackBytes header, read_bytes(file, 0, kPackHeaderBytes));
  if (const Status status = check_pack_header(header, layout); !status.ok()) {
    return unusable(file, status.error().code, status.error().what);
  }
  if (file.size() != layout.file_bytes) {
    return unusable(file, Code::kCorrupt,
                    "has " + std::to_string(file.size()) + " bytes and should have " +
                        std::to_string(layout.file_bytes));
  }
  TRY_OK(read_table(file, layout));
  return std::unique_ptr<PackFile>(new PackFile(std::move(opened), std::move(layout)));
}

Status PackFile::check(const PackTensor& tensor, std::span<const std::byte> bytes) const {
  CHECK(bytes.size() == tensor.bytes);
  if (xxh3_64(bytes) == tensor.checksum) return Ok{};
  return unusable(*file_, Code::kCorrupt,
                  "has damaged bytes in tensor \"" + tensor.name + "\" at offset " +
                      std::to_string(tensor.offset));
}

Result<bool> has_checksum(const File& file, const PackTensor& tensor, const AlignedBuffer& buffer,
                          std::atomic<uint64_t>& bytes_read) {
  const uint64_t piece_bytes = round_down(buffer.size() - kPageBytes, kPageBytes);
  Xxh3 hash;
  for (uint64_t done = 0; done < tensor.bytes; done += piece_bytes) {
    const uint64_t bytes = std::min(piece_bytes, tensor.bytes - done);
    TRY(const auto piece,
        file.read_direct(tensor.offset + done, bytes, buffer.bytes(), bytes_read));
    hash.update(piece);
  }
  return hash.digest() == tensor.checksum;
}

}  // namespace sluice
