// What a checkpoint holds, counted: for plans, and to hold a download against published numbers.
// Pure function; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "format/checkpoint.h"

namespace sluice {

struct CheckpointSizes {
  int64_t n_tensors = 0;              // in all shards
  int64_t n_unclaimed = 0;            // of them beside the decoder: vision tower, projector
  uint64_t spine_bytes = 0;           // payload as stored, without routed experts and unclaimed
  std::vector<uint64_t> layer_bytes;  // of them those of each layer
  uint64_t embed_head_bytes = 0;      // token embeddings and head (one tensor when tied)
  // What a sequence remembers (fp32).
  uint64_t kda_state_bytes = 0;         // recurrent states and convolution windows
  uint64_t latent_bytes_per_token = 0;  // MLA cache
};

CheckpointSizes checkpoint_sizes(const Checkpoint& checkpoint);

}  // namespace sluice
