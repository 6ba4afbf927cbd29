// Every tensor of a model of Kimi K3's form, shard by shard, typed from spec 2.1 and 2.3 and from
// nothing of src/: what the product derives from config.json is checked against this list. Pure
// functions.
#pragma once

#include "make_slice/shape.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::slice {

struct Tensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", "U8"
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};

// The tensors of shard 1..shape.shards() in the order of its payload: F32, BF16, U8, each by rising
// name.
std::vector<Tensor> shard_tensors(const Shape& shape, int64_t shard);

// "model-00058-of-000096.safetensors"
std::string shard_name(const Shape& shape, int64_t shard);

}  // namespace sluice::slice
