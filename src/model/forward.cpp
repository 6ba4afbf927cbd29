#include "model/forward.h"

#include <algorithm>
#include <string>

#include "model/attn_res.h"
#include "model/embedding.h"
#include "model/head.h"
#include "model/kda.h"
#include "model/layer.h"
#include "model/mla.h"
#include "model/mlp.h"
#include "model/moe.h"

namespace sluice {
namespace {

// How far AttnRes is when a layer begins, and whether the layer takes a snapshot (spec 4.2).
struct Residual {
  int64_t n_blocks;
  bool snapshot;
};

Residual residual_at(const Config& config, LayerId layer) {
  const int64_t size = config.attn_res_block_size;
  if (size == 0) return {0, false};
  return {(layer.v + size - 1) / size, layer.v % size == 0};
}

void norm_rows(const Pass& pass, Rows x, const Floats& weight) {
  for_each_row(pass.compute, x.n, [&](int64_t row) {
    pass.k().rms_norm(x.row(row), x.row(row), weight.data(), pass.config.hidden_size,
                      pass.config.rms_norm_eps);
  });
}

void capture_rows(const Pass& pass, const char* name, LayerId layer, const Tile& tile,
                  ConstRows rows) {
  if (pass.capture == nullptr) return;
  const int64_t hidden = pass.config.hidden_size;
  float* all = pass.capture->floats(name, {pass.config.n_layers, pass.n_rows, hidden});
  for (int64_t i = 0; i < tile.n_rows; ++i) {
    std::copy_n(rows.row(i), hidden, all + (layer.v * pass.n_rows + tile.first_row + i) * hidden);
  }
}

// Mix, snapshot, norm, attention; the running sum goes on, or restarts from the attention's output.
void attention_block(const Pass& pass, const Tile& tile, const Layer& layer, Residual at) {
  const int64_t hidden = pass.config.hidden_size;
  const Rows x = pass.workspace.tile(Scratch::kMixed, tile.n_rows);
  const Rows out = pass.workspace.tile(Scratch::kOut, tile.n_rows);
  const Rows residual = pass.rows_of(tile, pass.workspace.residual(pass.n_rows));
  attn_res_mix(pass, tile, at.n_blocks, layer.vectors.attn_res.data(), x, layer.id, "attn");
  norm_rows(pass, x, layer.vectors.input_layernorm);
  pass.config.is_kda(layer.id) ? kda(pass, tile, layer, x, out) : mla(pass, tile, layer, x, out);
  capture_rows(pass, "attn_out", layer.id, tile, out);
  for (int64_t i = 0; i < tile.n_rows; ++i) {
    if (at.snapshot) {
      const Rows block = pass.rows_of(tile, pass.workspace.block(at.n_blocks, pass.n_rows));
      std::copy_n(residual.row(i), hidden, block.row(i));
      std::copy_n(out.row(i), hidden, residual.row(i));
    } else {
      pass.k().add(residual.row(i), out.row(i), hidden);
    }
  }
}

// The FFN's input: mix of all blocks so far and the running sum, normalised.
Rows ffn_input(const Pass& pass, const Tile& tile, const Layer& layer, Residual at) {
  const Rows x = pass.workspace.tile(Scratch::kMixed, tile.n_rows);
  attn_res_mix(pass, tile, at.n_blocks + (at.snapshot ? 1 : 0), layer.vectors.mlp_res.data(), x,
               layer.id, "mlp");
  norm_rows(pass, x, layer.vectors.post_attention_layernorm);
  return x;
}

void add_ffn_output(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows out) {
  const Rows residual = pass.rows_of(tile, pass.workspace.residual(pass.n_rows));
  for (int64_t i = 0; i < tile.n_rows; ++i) {
    pass.k().add(residual.row(i), out.row(i), pass.config.hidden_size);
  }
  capture_rows(pass, "hidden", layer.id, tile, residual);
}

void dense_ffn(const Pass& pass, const Layer& layer, Residual at) {
  for (const Tile& tile : pass.tiles) {
    const Rows x = ffn_input(pass, tile, layer, at);
    const Rows out = pass.workspace.tile(Scratch::kOut, tile.n_rows);
    mlp(pass, layer.matrix(Role::kMlpGateProj), layer.matrix(Role::kMlpUpProj),
        layer.matrix(Role::kMlpDownProj), x, out);
    add_ffn_output(pass, tile, layer, out);
  }
}

// Routes all tiles, runs the union of their experts once, then finishes tile by tile. The FFN's input
// is computed twice rather than kept: it is cheap beside the matrices, and rows stay small.
Status moe_ffn(const PassSources& sources, const Pass& pass, const Layer& layer, Residual at) {
  for (const Tile& tile : pass.tiles) {
    moe_route(pass, tile, layer, ffn_input(pass, tile, layer, at));
  }
  TRY_OK(moe_experts(pass, layer, sources.checkpoint.expert_layout(), sources.experts));
  for (const Tile& tile : pass.tiles) {
    const Rows x = ffn_input(pass, tile, layer, at);
    const Rows out = pass.workspace.tile(Scratch::kOut, tile.n_rows);
    moe_output(pass, tile, layer, x, out);
    add_ffn_output(pass, tile, layer, out);
  }
  return Ok{};
}

Status run_layer(const PassSources& sources, const Pass& pass, LayerId id, int64_t kind_index) {
  TRY(const SpineLease spine, sources.spine.acquire(id));
  const Layer layer{.id = id,
                    .kind_index = kind_index,
                    .vectors = sources.weights.layers[static_cast<size_t>(id.v)],
                    .spine = spine};
  const Residual at = residual_at(pass.config, id);
  for (const Tile& tile : pass.tiles) attention_block(pass, tile, layer, at);
  if (pass.config.is_moe(id)) return moe_ffn(sources, pass, layer, at);
  dense_ffn(pass, layer, at);
  return Ok{};
}

}  // namespace

Status run_pass(const PassSources& sources, const Batch& batch, const Pass& pass, Rows logits,
                const std::atomic<bool>* stop) {
  TRY_OK(embed(sources.checkpoint, batch, pass, sources.embedding_bytes_read));
  int64_t n_kda = 0;
  int64_t n_mla = 0;
  for (int32_t layer = 0; layer < pass.config.n_layers; ++layer) {
    if (stop != nullptr && stop->load()) {
      return Error{Code::kCancelled, "cancelled before layer " + std::to_string(layer)};
    }
    int64_t& kind = pass.config.is_kda(LayerId{layer}) ? n_kda : n_mla;
    TRY_OK(run_layer(sources, pass, LayerId{layer}, kind++));
  }
  compute_logits(pass, batch, sources.weights, logits);
  for (const PassSequence& sequence : pass.sequences) {
    sequence.fate == RowFate::kKeep ? sequence.state->finish_keep(sequence.n_rows)
                                    : sequence.state->finish_tentative(sequence.n_rows);
  }
  return Ok{};
}

}  // namespace sluice
