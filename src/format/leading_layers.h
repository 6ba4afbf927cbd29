// Which shards the leading layers of a checkpoint need, so that these can be opened without the
// others. Asks the file system which shards exist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "format/config.h"
#include "format/shard_index.h"

namespace sluice {

// Lowers config.n_layers to `n_layers_max`, or to the layers before the first one that has a
// missing shard, and leaves the shards that those layers do not need out of `index`. `prefix`
// stands before every tensor name. kIo names the first missing shard when not even layer 0 is
// there.
Status keep_leading_layers(const std::filesystem::path& directory, std::string_view prefix,
                           int64_t n_layers_max, Config& config, ShardIndex& index);

}  // namespace sluice
