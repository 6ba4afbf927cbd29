// The identity of a checkpoint (contracts 3): SHA-256 over config.json's bytes, the sorted index
// (tensor, file) and every shard's header bytes and size. Pure function of the files.
//
// The hashed bytes, with u64 little-endian and text = u64 length, then the bytes:
//   "sluice checkpoint 1\n"
//   text: config.json
//   u64: number of tensors; for each, by rising bytes of its name: text name, text file name
//   u64: number of shards; for each, by rising file name: text file name, u64 file size,
//        text: the file's first bytes, from its 8-byte header length to the header's end
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/checkpoint.h"
#include "format/shard_index.h"

namespace sluice {

// 64 hex digits; the first 16 name things. kUnsupported for a checkpoint opened in part.
Result<std::string> fingerprint(const Checkpoint& checkpoint);

// What open() keeps of a whole checkpoint: the hash above. `files` are the index's, in its order;
// `header_bytes` of each counts the length field. Reads the headers again.
Result<std::string> hash_identity(std::string_view config_text, const ShardIndex& index,
                                  std::span<const FilePtr> files,
                                  std::span<const uint64_t> header_bytes);

}  // namespace sluice
