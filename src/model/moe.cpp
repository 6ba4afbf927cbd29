#include "model/moe.h"

#include <algorithm>
#include <vector>

#include "model/mlp.h"
#include "model/router.h"

namespace sluice {
namespace {

// All uses of the pass in rising expert, then row.
std::span<const RowUse> uses_by_expert(const Pass& pass) {
  const int64_t k = pass.config.moe.n_experts_per_token;
  std::vector<RowUse>& uses = pass.workspace.uses();
  uses.clear();
  for (int64_t row = 0; row < pass.n_rows; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      uses.push_back({pass.workspace.expert_ids(row)[i], static_cast<int32_t>(row),
                      pass.workspace.expert_weights(row)[i]});
    }
  }
  std::ranges::sort(uses, [](const RowUse& a, const RowUse& b) {
    return a.expert != b.expert ? a.expert < b.expert : a.row < b.row;
  });
  return uses;
}

struct ExpertMatrices {
  Matrix w1, w2, w3;  // gate, down, up
};

ExpertMatrices expert_matrices(const Config& config, const ExpertLayout& layout,
                               const std::byte* record) {
  const auto matrix = [&](ExpertPiece piece, int64_t rows, int64_t cols) {
    const auto index = static_cast<size_t>(piece);
    const bool mxfp4 = layout.format == ExpertFormat::kMxfp4;
    // A scale piece follows its weight piece in ExpertPiece.
    return Matrix{.format = mxfp4 ? WeightFormat::kMxfp4 : WeightFormat::kBf16,
                  .data = record + layout.piece_offset[index],
                  .scales = mxfp4 ? record + layout.piece_offset[index + 1] : nullptr,
                  .rows = rows,
                  .cols = cols};
  };
  const int64_t width = config.expert_width();
  const int64_t inner = config.moe.intermediate_size;
  return {matrix(ExpertPiece::kW1, inner, width), matrix(ExpertPiece::kW2, width, inner),
          matrix(ExpertPiece::kW3, inner, width)};
}

// One expert over at most kTileRows of its rows; adds weight * output to each row's sum.
void run_expert(const Pass& pass, const ExpertMatrices& w, std::span<const RowUse> uses) {
  const auto n = static_cast<int64_t>(uses.size());
  const int64_t width = pass.config.expert_width();
  const auto scratch = [&](Scratch what) { return pass.workspace.tile(what, n); };
  const Rows in = scratch(Scratch::kExpertIn);
  const Rows out = scratch(Scratch::kExpertOut);
  const Rows gate = scratch(Scratch::kExpertGate);
  const Rows up = scratch(Scratch::kExpertUp);
  const Rows latents = pass.workspace.expert_in(pass.n_rows);
  const Rows sums = pass.workspace.expert_sum(pass.n_rows);
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(latents.row(uses[static_cast<size_t>(i)].row), width, in.row(i));
  }
  linear(pass.compute, gate, w.w1, in);
  linear(pass.compute, up, w.w3, in);
  glu(pass, gate, up, w.w1.rows);
  linear(pass.compute, out, w.w2, gate);
  for_each_row(pass.compute, n, [&](int64_t i) {
    const RowUse& use = uses[static_cast<size_t>(i)];
    pass.k().axpy(sums.row(use.row), use.weight, out.row(i), width);
  });
}

void capture_routes(const Pass& pass, const Tile& tile, int64_t moe_index, int64_t n_moe_layers) {
  const int64_t k = pass.config.moe.n_experts_per_token;
  int64_t* ids = pass.capture->integers("router_ids", {n_moe_layers, pass.n_rows, k});
  float* weights = pass.capture->floats("router_weights", {n_moe_layers, pass.n_rows, k});
  for (int64_t row = tile.first_row; row < tile.first_row + tile.n_rows; ++row) {
    const int64_t at = (moe_index * pass.n_rows + row) * k;
    std::copy_n(pass.workspace.expert_ids(row), k, ids + at);
    std::copy_n(pass.workspace.expert_weights(row), k, weights + at);
  }
}

// How many MoE layers lie before `end`.
int64_t count_moe_layers(const Config& config, int64_t end) {
  int64_t n = 0;
  for (int32_t layer = 0; layer < end; ++layer) n += config.is_moe(LayerId{layer}) ? 1 : 0;
  return n;
}

}  // namespace

void moe_route(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x) {
  const MoeConfig& config = pass.config.moe;
  const Rows scores = pass.workspace.tile(Scratch::kScores, tile.n_rows);
  const Rows biased = pass.workspace.tile(Scratch::kBiased, tile.n_rows);
  linear(pass.compute, scores, layer.matrix(Role::kRouter), x);
  for_each_row(pass.compute, tile.n_rows, [&](int64_t i) {
    if (config.score == RouterScore::kSigmoid) {
      pass.k().sigmoid(scores.row(i), scores.row(i), config.n_experts);
    } else {
      router_softmax(scores.row(i), config.n_experts);
    }
    choose_experts(config, scores.row(i), layer.vectors.router_bias.data(), biased.row(i),
                   pass.workspace.expert_ids(tile.first_row + i),
                   pass.workspace.expert_weights(tile.first_row + i));
  });
  if (pass.capture != nullptr) {
    capture_routes(pass, tile, count_moe_layers(pass.config, layer.id.v),
                   count_moe_layers(pass.config, pass.config.n_layers));
  }

  const Rows in = pass.rows_of(tile, pass.workspace.expert_in(pass.n_rows));
  const Rows sum = pass.rows_of(tile, pass.workspace.expert_sum(pass.n_rows));
  if (config.latent_size != 0) {
    linear(pass.compute, in, layer.matrix(Role::kRoutedExpertDownProj), x);
  }
  for (int64_t i = 0; i < tile.n_rows; ++i) {
    if (config.latent_size == 0) std::copy_n(x.row(i), in.stride, in.row(i));
    std::fill_n(sum.row(i), sum.stride, 0.0f);
  }
}

Status moe_experts(const Pass& pass, const Layer& layer, const ExpertLayout& layout,
                   ExpertStore& experts) {
  const std::span<const RowUse> uses = uses_by_expert(pass);
  std::vector<ExpertId>& wanted = pass.workspace.experts();  // the union, rising
  wanted.clear();
  for (const RowUse& use : uses) {
    if (wanted.empty() || wanted.back().v != use.expert) wanted.push_back(ExpertId{use.expert});
  }
  ExpertBatch batch = experts.acquire(layer.id, wanted);
  for (size_t at = 0; at < uses.size();) {
    TRY(const std::optional<ExpertLease> lease, batch.next());
    CHECK(lease && lease->expert().v == uses[at].expert);
    const ExpertMatrices matrices = expert_matrices(pass.config, layout, lease->record());
    while (at < uses.size() && uses[at].expert == lease->expert().v) {
      size_t end = at;
      while (end < uses.size() && end - at < static_cast<size_t>(kTileRows) &&
             uses[end].expert == lease->expert().v) {
        ++end;
      }
      run_expert(pass, matrices, uses.subspan(at, end - at));
      at = end;
    }
  }
  return Ok{};
}

void moe_output(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out) {
  const MoeConfig& config = pass.config.moe;
  const Rows sum = pass.rows_of(tile, pass.workspace.expert_sum(pass.n_rows));
  if (config.latent_size == 0) {
    for (int64_t i = 0; i < tile.n_rows; ++i) std::copy_n(sum.row(i), out.stride, out.row(i));
  } else {
    if (config.latent_norm) {
      for_each_row(pass.compute, tile.n_rows, [&](int64_t i) {
        pass.k().rms_norm(sum.row(i), sum.row(i), layer.vectors.routed_expert_norm.data(),
                          config.latent_size, pass.config.rms_norm_eps);
      });
    }
    linear(pass.compute, out, layer.matrix(Role::kRoutedExpertUpProj), sum);
  }
  if (config.n_shared_experts == 0) return;
  const Rows shared = pass.workspace.tile(Scratch::kShared, tile.n_rows);
  mlp(pass, layer.matrix(Role::kSharedGateProj), layer.matrix(Role::kSharedUpProj),
      layer.matrix(Role::kSharedDownProj), x, shared);
  for_each_row(pass.compute, tile.n_rows, [&](int64_t i) {
    pass.k().add(out.row(i), shared.row(i), pass.config.hidden_size);
  });
}

}  // namespace sluice
