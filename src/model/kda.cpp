#include "model/kda.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice {
namespace {

static_assert(kKdaHeadDimMax <= kKdaValueDimMax);

constexpr float kL2Eps = 1e-6f;       // inside the root, spec 4.3
constexpr int64_t kConvGrain = 64;    // channels a thread takes at least

// What one tile of one layer works on.
struct KdaTile {
  const Pass& pass;
  const Tile& tile;
  const Layer& layer;
  std::array<Rows, 3> raw;         // q, k, v projections [rows, channels]
  std::array<Rows, 3> q_k_v;       // after the convolution
  Rows decay, beta, attn, gate;    // [rows, channels], [rows, heads], [rows, channels] twice
};

// The memory that rows of `part` read: the spare copy, which a prompt advances tile by tile, or the
// committed one.
KdaMemory source_memory(const KdaTile& t, const TilePart& part) {
  State& state = *part.sequence->state;
  return part.sequence->fate == RowFate::kKeep ? state.spare(t.layer.kind_index)
                                               : state.committed(t.layer.kind_index);
}

// A prompt starts a layer from a copy of the committed state.
void begin_sequences(const KdaTile& t) {
  for (const TilePart& part : t.pass.parts_of(t.tile)) {
    if (part.first != 0 || part.sequence->fate != RowFate::kKeep) continue;
    State& state = *part.sequence->state;
    std::copy_n(state.committed(t.layer.kind_index).recurrent, state.kda_shape().layer_floats(),
                state.spare(t.layer.kind_index).recurrent);
  }
}

void project(const KdaTile& t, ConstRows x) {
  const Compute& compute = t.pass.compute;
  const Config& config = t.pass.config;
  linear(compute, t.raw[0], t.layer.matrix(Role::kQProj), x);
  linear(compute, t.raw[1], t.layer.matrix(Role::kKProj), x);
  linear(compute, t.raw[2], t.layer.matrix(Role::kVProj), x);
  linear(compute, t.beta, t.layer.matrix(Role::kBProj), x);
  const Rows low = t.pass.workspace.tile(Scratch::kLowRank, t.tile.n_rows);
  linear(compute, low, t.layer.matrix(Role::kFAProj), x);
  linear(compute, t.decay, t.layer.matrix(Role::kFBProj), low);
  if (config.kda.full_rank_gate) {
    linear(compute, t.gate, t.layer.matrix(Role::kGProj), x);
  } else {
    linear(compute, low, t.layer.matrix(Role::kGAProj), x);
    linear(compute, t.gate, t.layer.matrix(Role::kGBProj), low);
  }
}

// Convolution of channels [begin, end) of all rows of one of q, k, v.
void convolve(const KdaTile& t, size_t which, int64_t begin, int64_t end) {
  const int64_t taps = t.pass.config.kda.conv_size;
  const int64_t channels = t.raw[which].stride;
  const float* weights = t.layer.vectors.conv[which].data();
  for (const TilePart& part : t.pass.parts_of(t.tile)) {
    const float* window = source_memory(t, part).windows[which];
    for (int64_t i = 0; i < part.n_rows; ++i) {
      std::array<const float*, kConvSizeMax> in;
      for (int64_t j = 0; j < taps; ++j) {
        const int64_t from = i - (taps - 1) + j;
        in[static_cast<size_t>(j)] =
            (from < 0 ? window + (from + taps - 1) * channels
                      : t.raw[which].row(part.tile_row + from)) +
            begin;
      }
      t.pass.k().conv_silu(t.q_k_v[which].row(part.tile_row + i) + begin, in.data(),
                           weights + begin, channels, taps, end - begin);
    }
  }
}

// q, k to unit length (q scaled), decay from its projection: one head of one row, in place.
void prepare_head(const KdaTile& t, int64_t row, int64_t head) {
  const KernelTable& k = t.pass.k();
  const KdaConfig& config = t.pass.config.kda;
  const int64_t d = config.head_dim;
  float* q = t.q_k_v[0].row(row) + head * d;
  float* key = t.q_k_v[1].row(row) + head * d;
  for (float* v : {q, key}) k.scale(v, v, 1.0f / std::sqrt(k.dot(v, v, d) + kL2Eps), d);
  k.scale(q, q, 1.0f / std::sqrt(static_cast<float>(d)), d);
  float* decay = t.decay.row(row) + head * d;
  const float* dt_bias = t.layer.vectors.dt_bias.data() + head * d;
  const float rate = t.layer.vectors.decay_rate[static_cast<size_t>(head)];
  if (config.gate_lower_bound) {
    k.kda_decay_bounded(decay, decay, dt_bias, rate, *config.gate_lower_bound, d);
  } else {
    k.kda_decay_softplus(decay, decay, dt_bias, rate, d);
  }
}

// The recurrence of one head over the rows of one part, with the head's norm and gate.
void run_head(const KdaTile& t, const TilePart& part, int64_t head, float* scratch_state) {
  const KernelTable& k = t.pass.k();
  const int64_t d = t.pass.config.kda.head_dim;
  float* recurrent = source_memory(t, part).recurrent + head * d * d;
  if (part.sequence->fate == RowFate::kTentative) {
    std::copy_n(recurrent, d * d, scratch_state);
    recurrent = scratch_state;
  }
  for (int64_t row = part.tile_row; row < part.tile_row + part.n_rows; ++row) {
    prepare_head(t, row, head);
    float* o = t.attn.row(row) + head * d;
    k.kda_step(recurrent, {.decay = t.decay.row(row) + head * d,
                           .k = t.q_k_v[1].row(row) + head * d,
                           .v = t.q_k_v[2].row(row) + head * d,
                           .q = t.q_k_v[0].row(row) + head * d,
                           .o = o,
                           .beta = t.beta.row(row)[head],
                           .key_dim = d,
                           .value_dim = d});
    k.rms_norm(o, o, t.layer.vectors.o_norm.data(), d, t.pass.config.rms_norm_eps);
    k.mul_sigmoid(o, t.gate.row(row) + head * d, d);
  }
}

// Rows that stay move the windows of the spare copy; tentative rows go to the log.
void remember(const KdaTile& t) {
  const int64_t channels = t.raw[0].stride;
  for (const TilePart& part : t.pass.parts_of(t.tile)) {
    State& state = *part.sequence->state;
    if (part.sequence->fate == RowFate::kKeep) {
      const KdaMemory memory = state.spare(t.layer.kind_index);
      for (size_t i = 0; i < 3; ++i) {
        shift_window(memory.windows[i], state.kda_shape().window, channels, part.n_rows,
                     [&](int64_t row) { return t.raw[i].row(part.tile_row + row); });
      }
      continue;
    }
    for (int64_t i = 0; i < part.n_rows; ++i) {
      const KdaLogRow log = state.log_row(t.layer.kind_index, part.first + i);
      const int64_t row = part.tile_row + i;
      for (size_t which = 0; which < 3; ++which) {
        std::copy_n(t.raw[which].row(row), channels, log.raw[which]);
      }
      std::copy_n(t.q_k_v[1].row(row), channels, log.k);
      std::copy_n(t.q_k_v[2].row(row), channels, log.v);
      std::copy_n(t.decay.row(row), channels, log.decay);
      std::copy_n(t.beta.row(row), state.kda_shape().n_heads, log.beta);
    }
  }
}

}  // namespace

void kda(const Pass& pass, const Tile& tile, const Layer& layer, ConstRows x, Rows out) {
  const auto scratch = [&](Scratch what) { return pass.workspace.tile(what, tile.n_rows); };
  const int64_t channels = pass.config.kda.n_heads * pass.config.kda.head_dim;
  const auto channel_rows = [&](Scratch what) {
    return Rows{scratch(what).data, tile.n_rows, channels};
  };
  const KdaTile t{.pass = pass,
                  .tile = tile,
                  .layer = layer,
                  .raw = {scratch(Scratch::kRawQ), scratch(Scratch::kRawK), scratch(Scratch::kRawV)},
                  .q_k_v = {channel_rows(Scratch::kQ), scratch(Scratch::kK), scratch(Scratch::kV)},
                  .decay = scratch(Scratch::kDecay),
                  .beta = scratch(Scratch::kBeta),
                  .attn = channel_rows(Scratch::kAttn),
                  .gate = channel_rows(Scratch::kGate)};
  begin_sequences(t);
  project(t, x);
  pass.compute.pool->run([&](int worker, int workers) {
    const Slice mine = slice(channels, worker, workers, kConvGrain);
    if (mine.begin == mine.end) return;
    for (size_t which = 0; which < 3; ++which) convolve(t, which, mine.begin, mine.end);
  });
  for (int64_t row = 0; row < tile.n_rows; ++row) {
    pass.k().sigmoid(t.beta.row(row), t.beta.row(row), t.beta.stride);
  }
  pass.compute.pool->run([&](int worker, int workers) {
    const Slice mine = slice(pass.config.kda.n_heads, worker, workers);
    for (int64_t head = mine.begin; head < mine.end; ++head) {
      for (const TilePart& part : pass.parts_of(tile)) {
        run_head(t, part, head, pass.workspace.head_state(worker));
      }
    }
  });
  remember(t);
  linear(pass.compute, out, layer.matrix(Role::kOProj), t.attn);
}

}  // namespace sluice
