#include "model/mla.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

struct MlaTile {
  const Pass& pass;
  const Tile& tile;
  const Layer& layer;
  const MlaConfig& config;
  Rows query;     // [rows, heads * qk_head_dim]
  Rows absorbed;  // [rows, heads * latent_dim]
  Rows context;   // [rows, heads * kv_lora]
  Rows attn;      // [rows, heads * v_head_dim]
};

void project_query(const MlaTile& t, ConstRows x) {
  const Compute& compute = t.pass.compute;
  if (t.config.q_lora_rank == 0) {
    linear(compute, t.query, t.layer.matrix(Role::kQProj), x);
    return;
  }
  const Rows low = t.pass.workspace.tile(Scratch::kLowRank, t.tile.n_rows);
  linear(compute, low, t.layer.matrix(Role::kQAProj), x);
  for (int64_t row = 0; row < t.tile.n_rows; ++row) {
    t.pass.k().rms_norm(low.row(row), low.row(row), t.layer.vectors.q_a_layernorm.data(),
                        t.config.q_lora_rank, t.pass.qkv_norm_eps);
  }
  linear(compute, t.query, t.layer.matrix(Role::kQBProj), low);
}

// Writes each row's normalised latent and raw rope slot into its sequence's pages.
void append_latents(const MlaTile& t, ConstRows x) {
  const Rows latent = t.pass.workspace.tile(Scratch::kLatent, t.tile.n_rows);
  linear(t.pass.compute, latent, t.layer.matrix(Role::kKvAProj), x);
  for (const TilePart& part : t.pass.parts_of(t.tile)) {
    for (int64_t i = 0; i < part.n_rows; ++i) {
      const float* from = latent.row(part.tile_row + i);
      const int64_t position = part.sequence->base_position + part.first + i;
      float* to = part.sequence->state->latent(t.layer.kind_index, position);
      t.pass.k().rms_norm(to, from, t.layer.vectors.kv_a_layernorm.data(), t.config.kv_lora_rank,
                          t.pass.qkv_norm_eps);
      std::copy_n(from + t.config.kv_lora_rank, t.config.qk_rope_head_dim,
                  to + t.config.kv_lora_rank);
    }
  }
}

// One head of one row at `position`: absorbed query, then all cached positions up to its own.
void attend(const MlaTile& t, const Matrix& key, const State& state, int64_t row, int64_t head,
            int64_t position) {
  const KernelTable& k = t.pass.k();
  const MlaConfig& c = t.config;
  const float* q = t.query.row(row) + head * c.qk_head_dim();
  float* absorbed = t.absorbed.row(row) + head * c.latent_dim();
  k.transposed(absorbed, key, q, 0, c.qk_nope_head_dim);
  std::copy_n(q + c.qk_nope_head_dim, c.qk_rope_head_dim, absorbed + c.kv_lora_rank);

  const float scale = 1.0f / std::sqrt(static_cast<float>(c.qk_head_dim()));
  float* context = t.context.row(row) + head * c.kv_lora_rank;
  std::fill_n(context, c.kv_lora_rank, 0.0f);
  AttentionRun run{.max = -INFINITY, .sum = 0.0f, .context = context};
  for (int64_t block = 0; block <= position; block += kAttentionBlock) {
    k.attend_block(run, absorbed, scale,
                   {.latents = state.latent(t.layer.kind_index, block),
                    .count = std::min(kAttentionBlock, position + 1 - block),
                    .kv_lora = c.kv_lora_rank,
                    .latent_dim = c.latent_dim()});
  }
  for (int64_t l = 0; l < c.kv_lora_rank; ++l) context[l] = context[l] / run.sum;
}

// All rows of one head: attention, then its slice of the values.
void run_head(const MlaTile& t, const Matrix& kv_b, int64_t head) {
  const MlaConfig& c = t.config;
  const int64_t first = head * (c.qk_nope_head_dim + c.v_head_dim);
  const Matrix key = row_slice(kv_b, first, c.qk_nope_head_dim);
  const Matrix value = row_slice(kv_b, first + c.qk_nope_head_dim, c.v_head_dim);
  for (const TilePart& part : t.pass.parts_of(t.tile)) {
    for (int64_t i = 0; i < part.n_rows; ++i) {
      attend(t, key, *part.sequence->state, part.tile_row + i, head,
             part.sequence->base_position + part.first + i);
    }
  }
  const KernelTable& k = t.pass.k();
  const auto matmul = value.format == WeightFormat::kInt8 ? k.matmul_int8 : k.matmul_bf16;
  matmul({t.attn.data + head * c.v_head_dim, t.attn.n, t.attn.stride}, value,
         {t.context.data + head * c.kv_lora_rank, t.context.n, t.context.stride}, 0, value.rows);
}

}  // namespace

void mla(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out) {
  const MlaConfig& config = pass.config.mla;
  const auto scratch = [&](Scratch what) { return pass.workspace.tile(what, tile.n_rows); };
  const MlaTile t{.pass = pass,
                  .tile = tile,
                  .layer = layer,
                  .config = config,
                  .query = scratch(Scratch::kQ),
                  .absorbed = scratch(Scratch::kAbsorbed),
                  .context = scratch(Scratch::kContext),
                  .attn = scratch(Scratch::kAttn)};
  project_query(t, x);
  append_latents(t, x);
  const Matrix kv_b = layer.matrix(Role::kKvBProj);
  pass.compute.pool->run([&](int worker, int workers) {
    const Slice mine = slice(config.n_heads, worker, workers);
    for (int64_t head = mine.begin; head < mine.end; ++head) run_head(t, kv_b, head);
  });
  if (config.output_gate) {
    const Rows gate = scratch(Scratch::kGate);
    linear(pass.compute, gate, layer.matrix(Role::kGProj), x);
    for_each_row(pass.compute, tile.n_rows, [&](int64_t row) {
      pass.k().mul_sigmoid(t.attn.row(row), gate.row(row), config.n_heads * config.v_head_dim);
    });
  }
  linear(pass.compute, out, layer.matrix(Role::kOProj), t.attn);
}

}  // namespace sluice
