// Every tensor of the released Kimi K3, shard by shard, typed from spec 2.1 and 2.3 and from
// nothing of src/: what the product derives from config.json is checked against this list. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::replica {

constexpr int kLayers = 93;
constexpr int kExperts = 896;
constexpr int kShards = 96;
constexpr uint64_t kPayloadBytes = 1'560'860'324'864;  // total_size of the index
constexpr int64_t kTensors = 497'220;

struct Tensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", "U8"
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};

// Layers 3, 7, ... 91 and 92.
bool is_mla(int layer);

// The tensors of shard 1..96 in the order of its payload: F32, BF16, U8, each by rising name.
std::vector<Tensor> shard_tensors(int shard);

// What spec 2.1 says of a shard.
struct ShardSize {
  int64_t n_tensors;
  uint64_t payload_bytes;
};
ShardSize published_size(int shard);

std::string shard_name(int shard);  // "model-00058-of-000096.safetensors"

}  // namespace sluice::replica
