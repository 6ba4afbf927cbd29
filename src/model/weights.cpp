#include "model/weights.h"

#include "base/bf16.h"
#include "kernels/math.h"

#include <atomic>
#include <cstring>
#include <span>
#include <utility>

namespace sluice {
namespace {

// Reads the vectors of one checkpoint, widened to fp32; those of the layers from the pack if there
// is one, which has them beside the matrices.
class VectorReader {
 public:
  VectorReader(const Checkpoint& checkpoint, const PackFile* pack)
      : checkpoint_(checkpoint), pack_(pack) {}

  // The elements of a tensor outside the layers; empty when it is absent.
  Result<Floats> read(Role role) {
    const TensorRef& tensor = checkpoint_.global(role);
    if (!tensor.present()) return Floats();
    return read_snapshot(tensor);
  }
  Result<Floats> read(LayerId layer, Role role) {
    const TensorRef& tensor = checkpoint_.tensor(layer, role);
    if (!tensor.present()) return Floats();
    if (pack_ == nullptr) return read_snapshot(tensor);
    const PackTensor& packed = *pack_->tensor(layer, role);
    std::vector<std::byte> raw(packed.bytes);
    TRY_OK(pack_->file().read_at(packed.offset, raw));
    TRY_OK(pack_->check(packed, raw));
    return widen(tensor, raw);
  }

  // [channels, taps] -> [taps, channels], so that kernels run along channels.
  Result<Floats> read_conv(LayerId layer, Role role) {
    TRY(const Floats stored, read(layer, role));
    const auto taps = static_cast<size_t>(checkpoint_.config().kda.conv_size);
    const size_t channels = stored.size() / taps;
    Floats conv(stored.size());
    for (size_t c = 0; c < channels; ++c) {
      for (size_t j = 0; j < taps; ++j) conv[j * channels + c] = stored[c * taps + j];
    }
    return conv;
  }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  Result<Floats> read_snapshot(const TensorRef& tensor) {
    std::vector<std::byte> raw(tensor.bytes);
    TRY_OK(checkpoint_.file(tensor.file).read_at(tensor.offset, raw));
    return widen(tensor, raw);
  }
  Floats widen(const TensorRef& tensor, std::span<const std::byte> raw) {
    bytes_read_ += raw.size();
    Floats out(static_cast<size_t>(tensor.rows * tensor.cols));
    if (tensor.dtype == Dtype::kF32) {
      std::memcpy(out.data(), raw.data(), out.size() * sizeof(float));
      return out;
    }
    CHECK(tensor.dtype == Dtype::kBf16);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = bf16_at(raw.data(), static_cast<int64_t>(i));
    }
    return out;
  }

  const Checkpoint& checkpoint_;
  const PackFile* pack_;
  uint64_t bytes_read_ = 0;
};

// norm * proj: both enter AttnRes scores only as a product (FORMAT 1.5).
Floats product(Floats norm, const Floats& proj) {
  for (size_t i = 0; i < norm.size(); ++i) norm[i] = norm[i] * proj[i];
  return norm;
}

Status read_kda(VectorReader& reader, const Config& config, LayerId layer, LayerVectors& v) {
  TRY(v.decay_rate, reader.read(layer, Role::kALog));
  v.decay_rate.resize(static_cast<size_t>(config.kda.n_heads));  // stored padded, spec 12.1
  for (float& a : v.decay_rate) a = exp_f32(a);
  TRY(v.dt_bias, reader.read(layer, Role::kDtBias));
  TRY(v.conv[0], reader.read_conv(layer, Role::kQConv));
  TRY(v.conv[1], reader.read_conv(layer, Role::kKConv));
  TRY(v.conv[2], reader.read_conv(layer, Role::kVConv));
  TRY(v.o_norm, reader.read(layer, Role::kONorm));
  return Ok{};
}

Status read_layer(VectorReader& reader, const Checkpoint& checkpoint, LayerId layer,
                  LayerVectors& v) {
  TRY(v.input_layernorm, reader.read(layer, Role::kInputLayernorm));
  TRY(v.post_attention_layernorm, reader.read(layer, Role::kPostAttentionLayernorm));
  TRY(Floats norm, reader.read(layer, Role::kSelfAttentionResNorm));
  TRY(Floats proj, reader.read(layer, Role::kSelfAttentionResProj));
  v.attn_res = product(std::move(norm), proj);
  TRY(norm, reader.read(layer, Role::kMlpResNorm));
  TRY(proj, reader.read(layer, Role::kMlpResProj));
  v.mlp_res = product(std::move(norm), proj);
  if (checkpoint.config().is_kda(layer)) {
    TRY_OK(read_kda(reader, checkpoint.config(), layer, v));
  } else {
    TRY(v.q_a_layernorm, reader.read(layer, Role::kQALayernorm));
    TRY(v.kv_a_layernorm, reader.read(layer, Role::kKvALayernorm));
  }
  TRY(v.router_bias, reader.read(layer, Role::kRouterBias));
  TRY(v.routed_expert_norm, reader.read(layer, Role::kRoutedExpertNorm));
  return Ok{};
}

Status read_head(const Checkpoint& checkpoint, const PackFile* pack, Weights& weights,
                 std::atomic<uint64_t>& bytes_read) {
  const TensorRef& head = checkpoint.global(Role::kLmHead);
  weights.head_slot = AlignedBuffer(head_bytes(checkpoint, pack));
  const auto slot = weights.head_slot.bytes();
  StoredMatrix stored{.dtype = head.dtype, .rows = head.rows, .cols = head.cols};
  if (pack != nullptr) {
    const PackTensor& packed = pack->layout().head();
    TRY(const auto bytes, pack->file().read_direct(packed.offset, packed.bytes, slot, bytes_read));
    TRY_OK(pack->check(packed, bytes));
    stored.dtype = packed.dtype;
    stored.data = bytes.data();
    stored.scales = bytes.data() + packed.scales_at();
  } else {
    const File& file = checkpoint.file(head.file);
    TRY(const auto bytes, file.read_direct(head.offset, head.bytes, slot, bytes_read));
    stored.data = bytes.data();
  }
  weights.head = to_matrix(stored);
  return Ok{};
}

}  // namespace

Result<Weights> load_weights(const Checkpoint& checkpoint, const PackFile* pack) {
  Weights weights;
  VectorReader reader(checkpoint, pack);
  for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
    TRY_OK(read_layer(reader, checkpoint, LayerId{layer}, weights.layers.emplace_back()));
  }
  TRY(weights.final_norm, reader.read(Role::kFinalNorm));
  TRY(Floats norm, reader.read(Role::kOutputAttnResNorm));
  TRY(const Floats proj, reader.read(Role::kOutputAttnResProj));
  weights.output_attn_res = product(std::move(norm), proj);
  std::atomic<uint64_t> bytes_read = reader.bytes_read();
  TRY_OK(read_head(checkpoint, pack, weights, bytes_read));
  weights.bytes_read = bytes_read;
  return weights;
}

uint64_t head_bytes(const Checkpoint& checkpoint, const PackFile* pack) {
  return slot_bytes(pack ? pack->layout().head().bytes : checkpoint.global(Role::kLmHead).bytes);
}

uint64_t vector_bytes(const Checkpoint& checkpoint) {
  uint64_t floats = 0;
  const auto add = [&](const TensorRef& tensor) {
    if (tensor.present() && tensor.kind == TensorKind::kVector) {
      floats += static_cast<uint64_t>(tensor.rows * tensor.cols);
    }
  };
  for (size_t role = 0; role < kRoles; ++role) {
    add(checkpoint.global(static_cast<Role>(role)));
    for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
      add(checkpoint.tensor(LayerId{layer}, static_cast<Role>(role)));
    }
  }
  return floats * sizeof(float);
}

Matrix to_matrix(const StoredMatrix& stored) {
  CHECK(stored.dtype == Dtype::kBf16 || stored.dtype == Dtype::kI8);
  return {.format = stored.dtype == Dtype::kBf16 ? WeightFormat::kBf16 : WeightFormat::kInt8,
          .data = stored.data,
          .scales = stored.scales,
          .rows = stored.rows,
          .cols = stored.cols};
}

Matrix row_slice(const Matrix& w, int64_t row_begin, int64_t n_rows) {
  CHECK(w.format != WeightFormat::kMxfp4);
  const int64_t row_bytes = w.format == WeightFormat::kBf16 ? 2 * w.cols : w.cols;
  Matrix part = w;
  part.data += row_begin * row_bytes;
  if (part.scales != nullptr) part.scales += row_begin * static_cast<int64_t>(sizeof(float));
  part.rows = n_rows;
  return part;
}

}  // namespace sluice
