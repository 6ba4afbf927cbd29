#include "model/weights.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "kernels/math.h"

namespace sluice {
namespace {

// Reads the vectors of one checkpoint, widened to fp32.
class VectorReader {
 public:
  explicit VectorReader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // The elements of `tensor`; empty when it is absent.
  Result<Floats> read(const TensorRef& tensor) {
    Floats out;
    if (!tensor.present()) return out;
    std::vector<std::byte> raw(tensor.bytes);
    TRY_OK(checkpoint_.file(tensor.file).read_at(tensor.offset, raw));
    bytes_read_ += tensor.bytes;
    out.resize(static_cast<size_t>(tensor.rows * tensor.cols));
    if (tensor.dtype == Dtype::kF32) {
      std::memcpy(out.data(), raw.data(), out.size() * sizeof(float));
      return out;
    }
    CHECK(tensor.dtype == Dtype::kBf16);
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, raw.data() + 2 * i, sizeof(bits));
      out[i] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
    return out;
  }
  Result<Floats> read(LayerId layer, Role role) { return read(checkpoint_.tensor(layer, role)); }

  // norm * proj: both enter AttnRes scores only as a product (FORMAT 1.5).
  Result<Floats> read_product(const TensorRef& norm, const TensorRef& proj) {
    TRY(Floats product, read(norm));
    TRY(const Floats factor, read(proj));
    for (size_t i = 0; i < product.size(); ++i) product[i] = product[i] * factor[i];
    return product;
  }
  // [channels, taps] -> [taps, channels], so that kernels run along channels.
  Result<Floats> read_conv(LayerId layer, Role role) {
    const TensorRef& tensor = checkpoint_.tensor(layer, role);
    TRY(const Floats stored, read(tensor));
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
  const Checkpoint& checkpoint_;
  uint64_t bytes_read_ = 0;
};

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
  TRY(v.attn_res, reader.read_product(checkpoint.tensor(layer, Role::kSelfAttentionResNorm),
                                      checkpoint.tensor(layer, Role::kSelfAttentionResProj)));
  TRY(v.mlp_res, reader.read_product(checkpoint.tensor(layer, Role::kMlpResNorm),
                                     checkpoint.tensor(layer, Role::kMlpResProj)));
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

}  // namespace

Result<Weights> load_weights(const Checkpoint& checkpoint) {
  Weights weights;
  VectorReader reader(checkpoint);
  for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
    TRY_OK(read_layer(reader, checkpoint, LayerId{layer}, weights.layers.emplace_back()));
  }
  TRY(weights.final_norm, reader.read(checkpoint.global(Role::kFinalNorm)));
  TRY(weights.output_attn_res, reader.read_product(checkpoint.global(Role::kOutputAttnResNorm),
                                                   checkpoint.global(Role::kOutputAttnResProj)));

  const TensorRef& head = checkpoint.global(Role::kLmHead);
  weights.head_slot = AlignedBuffer(head_bytes(checkpoint));
  std::atomic<uint64_t> bytes_read = reader.bytes_read();
  TRY(const auto bytes, checkpoint.file(head.file).read_direct(head.offset, head.bytes,
                                                               weights.head_slot.bytes(),
                                                               bytes_read));
  weights.head = to_matrix({head.dtype, bytes.data(), nullptr, head.rows, head.cols});
  weights.bytes_read = bytes_read;
  return weights;
}

uint64_t head_bytes(const Checkpoint& checkpoint) {
  return slot_bytes(checkpoint.global(Role::kLmHead).bytes);
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
