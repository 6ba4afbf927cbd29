// A snapshot of the released Kimi K3 without its weights: every file that a program opens, headers
// and sizes as published, payloads as holes of sparse files. Takes 150 MB of disk for an
// apparent 1.56 TB. One owner of the directory while it is written.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "replica/tensor_list.h"

namespace sluice::replica {

// Writes the whole snapshot into `directory`, which must exist. CHECKs every shard and the total
// against the published numbers. kIo names the file that could not be written.
Status write_replica(const std::filesystem::path& directory);

// Writes one shard: the header of `tensors` in their order, and a payload of holes.
Status write_shard(const std::filesystem::path& path, const std::vector<Tensor>& tensors);

// Writes the index without the tensor `left_out` (empty: of all).
Status write_index(const std::filesystem::path& directory, std::string_view left_out);

}  // namespace sluice::replica
