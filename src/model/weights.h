// What of a model is always resident: every vector (norms, biases, convolutions) as fp32, and the
// head. Matrices of the layers are in the spine store. Immutable after load.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "kernels/kernels.h"
#include "store/spine_store.h"

namespace sluice {

using Floats = std::vector<float>;

struct LayerVectors {
  Floats input_layernorm;           // [hidden]
  Floats post_attention_layernorm;  // [hidden]
  Floats attn_res;                  // [hidden] self_attention_res_norm * self_attention_res_proj
  Floats mlp_res;                   // [hidden] mlp_res_norm * mlp_res_proj
  // KDA
  Floats decay_rate;           // [heads] exp(A_log)
  Floats dt_bias;              // [channels]
  std::array<Floats, 3> conv;  // q, k, v: [taps, channels]
  Floats o_norm;               // [head_dim]
  // MLA
  Floats q_a_layernorm;   // [q_lora], empty without q_lora
  Floats kv_a_layernorm;  // [kv_lora]
  // MoE
  Floats router_bias;         // [experts]
  Floats routed_expert_norm;  // [latent], empty without latent norm
};

struct Weights {
  std::vector<LayerVectors> layers;
  Floats final_norm;       // [hidden]
  Floats output_attn_res;  // [hidden], empty without AttnRes
  AlignedBuffer head_slot;
  Matrix head;  // [vocab, hidden] in head_slot
  uint64_t bytes_read = 0;
};

// Reads vectors and head, from `pack` what it holds of them unless it is null. Errors name file and
// offset, or the pack's tensor that lost its checksum.
Result<Weights> load_weights(const Checkpoint& checkpoint, const PackFile* pack);

// Resident bytes of load_weights: the head's slot, and the vectors.
uint64_t head_bytes(const Checkpoint& checkpoint, const PackFile* pack);
uint64_t vector_bytes(const Checkpoint& checkpoint);

// A stored matrix as the kernels take it.
Matrix to_matrix(const StoredMatrix& stored);
// Rows [row_begin, row_begin + n_rows) of `w`.
Matrix row_slice(const Matrix& w, int64_t row_begin, int64_t n_rows);

}  // namespace sluice
