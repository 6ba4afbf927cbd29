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

#include <string>

#include "base/error.h"
#include "format/checkpoint.h"

namespace sluice {

// 64 hex digits; the first 16 name things. Reads config, index and headers again (seconds on K3).
Result<std::string> fingerprint(const Checkpoint& checkpoint);

}  // namespace sluice
