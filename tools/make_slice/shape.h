// The sizes of a model of Kimi K3's form: the released ones, or fewer layers, fewer experts and
// divided widths. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::slice {

struct Shape {
  int64_t layers = 93;
  int64_t experts = 896;
  int64_t experts_per_token = 16;
  int64_t hidden = 7168;
  int64_t heads = 96;     // of KDA and of MLA, 128 wide
  int64_t latent = 3584;  // width at which routed experts run
  int64_t inner = 3072;   // of a routed expert; both shared experts together have twice that
  int64_t dense = 33792;
  int64_t q_lora = 1536;
  int64_t kv_lora = 512;
  bool vision = true;  // with the vision tower and its projector
  int64_t width() const { return heads * 128; }
  int64_t shared() const { return 2 * inner; }
  // One for each layer, one for embeddings and head, two for vision.
  int64_t shards() const { return layers + 1 + (vision ? 2 : 0); }
  friend bool operator==(const Shape&, const Shape&) = default;
};

constexpr int64_t kVocab = 163'840;

// Layers 3, 7, ... and the last.
inline bool is_mla(const Shape& shape, int64_t layer) {
  return layer % 4 == 3 || layer == shape.layers - 1;
}

// The text part with other numbers of layers and experts, and all widths divided by `reduce`,
// rounded up to whole 128s.
inline Shape slice_shape(int64_t layers, int64_t experts, int64_t reduce) {
  const auto width = [reduce](int64_t full) { return (full / reduce + 127) / 128 * 128; };
  Shape shape;
  shape.layers = layers;
  shape.experts = experts;
  shape.experts_per_token = std::min<int64_t>(16, experts);
  shape.hidden = width(shape.hidden);
  shape.heads = std::max<int64_t>(1, shape.heads / reduce);
  shape.latent = width(shape.latent);
  shape.inner = width(shape.inner);
  shape.dense = width(shape.dense);
  shape.q_lora = width(shape.q_lora);
  shape.kv_lora = width(shape.kv_lora);
  shape.vision = false;
  return shape;
}

}  // namespace sluice::slice
