// The bytes of a pack's header, table and footer (docs/FORMAT.md part 2), little-endian. Pure
// functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/pack_layout.h"

namespace sluice {

using PackBytes = std::vector<std::byte>;

constexpr uint64_t kPackTableHeadBytes = 8;  // the number of entries

PackBytes encode_pack_header(const PackLayout& layout);
uint64_t pack_entry_bytes(const PackTensor& tensor);
PackBytes encode_pack_entries(const PackGroup& group);
PackBytes encode_pack_table(const PackLayout& layout);
PackBytes encode_pack_footer(const PackLayout& layout, std::span<const std::byte> table);

// kCorrupt (another version: kUnsupported) says in what `header` differs from that of `layout`, as
// the end of a sentence that begins with the file.
Status check_pack_header(std::span<const std::byte> header, const PackLayout& layout);

// Takes the checksums of the group's tensors out of its encoded entries. False when the entries are
// not those of the group.
bool take_pack_checksums(std::span<const std::byte> entries, PackGroup& group);

// The tensors that the table of `file` lists, with what an entry says of them, by header and table
// alone: for tools without the checkpoint. kCorrupt names the file.
Result<std::vector<PackTensor>> read_pack_table(const File& file);

}  // namespace sluice
