#include "make_slice/tensor_list.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace sluice::slice {
namespace {

constexpr int kVisionBlocks = 27;

using Tensors = std::vector<Tensor>;

uint64_t element_bytes(const std::string& dtype) {
  return dtype == "F32" ? 4 : dtype == "BF16" ? 2 : 1;
}

// Adds tensors whose names share a prefix.
class Adder {
 public:
  Adder(Tensors& out, std::string prefix) : out_(out), prefix_(std::move(prefix)) {}
  void bf16(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "BF16", std::move(shape)});
  }
  void f32(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "F32", std::move(shape)});
  }
  void u8(const std::string& name, std::vector<int64_t> shape) {
    out_.push_back({prefix_ + name, "U8", std::move(shape)});
  }

 private:
  Tensors& out_;
  std::string prefix_;
};

void add_norms(Adder& add, const Shape& shape) {
  for (const char* name :
       {"input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm"}) {
    add.bf16(std::string(name) + ".weight", {shape.hidden});
  }
  add.bf16("self_attention_res_proj.weight", {1, shape.hidden});
  add.bf16("mlp_res_proj.weight", {1, shape.hidden});
}

void add_kda(Adder& add, const Shape& shape) {
  for (const char* name : {"q_proj", "k_proj", "v_proj", "g_proj"}) {
    add.bf16("self_attn." + std::string(name) + ".weight", {shape.width(), shape.hidden});
  }
  add.bf16("self_attn.o_proj.weight", {shape.hidden, shape.width()});
  add.bf16("self_attn.f_a_proj.weight", {128, shape.hidden});
  add.bf16("self_attn.f_b_proj.weight", {shape.width(), 128});
  add.bf16("self_attn.b_proj.weight", {shape.heads, shape.hidden});
  add.f32("self_attn.A_log", {128});
  add.f32("self_attn.dt_bias", {shape.width()});
  for (const char* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    add.f32("self_attn." + std::string(name) + ".weight", {shape.width(), 1, 4});
  }
  add.f32("self_attn.o_norm.weight", {128});
}

void add_mla(Adder& add, const Shape& shape) {
  add.bf16("self_attn.q_a_proj.weight", {shape.q_lora, shape.hidden});
  add.bf16("self_attn.q_a_layernorm.weight", {shape.q_lora});
  add.bf16("self_attn.q_b_proj.weight", {shape.heads * 192, shape.q_lora});
  add.bf16("self_attn.kv_a_proj_with_mqa.weight", {shape.kv_lora + 64, shape.hidden});
  add.bf16("self_attn.kv_a_layernorm.weight", {shape.kv_lora});
  add.bf16("self_attn.kv_b_proj.weight", {shape.heads * 256, shape.kv_lora});
  add.bf16("self_attn.g_proj.weight", {shape.width(), shape.hidden});
  add.bf16("self_attn.o_proj.weight", {shape.hidden, shape.width()});
}

void add_moe(Adder& add, const Shape& shape) {
  add.bf16("block_sparse_moe.gate.weight", {shape.experts, shape.hidden});
  add.f32("block_sparse_moe.gate.e_score_correction_bias", {shape.experts});
  add.bf16("block_sparse_moe.routed_expert_down_proj.weight", {shape.latent, shape.hidden});
  add.bf16("block_sparse_moe.routed_expert_norm.weight", {shape.latent});
  add.bf16("block_sparse_moe.routed_expert_up_proj.weight", {shape.hidden, shape.latent});
  add.bf16("block_sparse_moe.shared_experts.gate_proj.weight", {shape.shared(), shape.hidden});
  add.bf16("block_sparse_moe.shared_experts.up_proj.weight", {shape.shared(), shape.hidden});
  add.bf16("block_sparse_moe.shared_experts.down_proj.weight", {shape.hidden, shape.shared()});
  for (int64_t expert = 0; expert < shape.experts; ++expert) {
    const std::string name = "block_sparse_moe.experts." + std::to_string(expert);
    for (const char* up : {".w1", ".w3"}) {
      add.u8(name + up + ".weight_packed", {shape.inner, shape.latent / 2});
      add.u8(name + up + ".weight_scale", {shape.inner, shape.latent / 32});
    }
    add.u8(name + ".w2.weight_packed", {shape.latent, shape.inner / 2});
    add.u8(name + ".w2.weight_scale", {shape.latent, shape.inner / 32});
  }
}

void add_layer(Tensors& out, const Shape& shape, int64_t layer) {
  Adder add(out, "language_model.model.layers." + std::to_string(layer) + ".");
  add_norms(add, shape);
  is_mla(shape, layer) ? add_mla(add, shape) : add_kda(add, shape);
  if (layer > 0) {
    add_moe(add, shape);
    return;
  }
  add.bf16("mlp.gate_proj.weight", {shape.dense, shape.hidden});
  add.bf16("mlp.up_proj.weight", {shape.dense, shape.hidden});
  add.bf16("mlp.down_proj.weight", {shape.hidden, shape.dense});
}

void add_globals(Tensors& out, const Shape& shape) {
  Adder add(out, "language_model.");
  add.bf16("lm_head.weight", {kVocab, shape.hidden});
  add.bf16("model.embed_tokens.weight", {kVocab, shape.hidden});
  add.bf16("model.norm.weight", {shape.hidden});
  add.bf16("model.output_attn_res_norm.weight", {shape.hidden});
  add.bf16("model.output_attn_res_proj.weight", {1, shape.hidden});
}

void add_projector(Tensors& out, const Shape& shape) {
  Adder add(out, "mm_projector.");
  add.bf16("proj.0.weight", {4096, 4096});
  add.bf16("proj.2.weight", {shape.hidden, 4096});
  add.bf16("post_norm.weight", {shape.hidden});
}

void add_vision(Tensors& out) {
  Adder add(out, "vision_tower.");
  add.bf16("patch_embed.proj.weight", {1024, 3, 14, 14});
  add.bf16("patch_embed.pos_emb.weight", {64, 64, 1024});
  add.bf16("encoder.final_layernorm.weight", {1024});
  for (int block = 0; block < kVisionBlocks; ++block) {
    const std::string name = "encoder.blocks." + std::to_string(block) + ".";
    add.bf16(name + "norm0.weight", {1024});
    add.bf16(name + "norm1.weight", {1024});
    add.bf16(name + "wqkv.weight", {4608, 1024});
    add.bf16(name + "wo.weight", {1024, 1536});
    add.bf16(name + "mlp.fc0.weight", {4096, 1024});
    add.bf16(name + "mlp.fc1.weight", {1024, 4096});
  }
}

// F32, then BF16, then U8.
int dtype_rank(const Tensor& tensor) {
  return tensor.dtype == "F32" ? 0 : tensor.dtype == "BF16" ? 1 : 2;
}

}  // namespace

uint64_t Tensor::bytes() const {
  uint64_t bytes = element_bytes(dtype);
  for (const int64_t dim : shape) bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

std::vector<Tensor> shard_tensors(const Shape& shape, int64_t shard) {
  CHECK(shard >= 1 && shard <= shape.shards());
  Tensors tensors;
  if (shard <= shape.layers) {
    add_layer(tensors, shape, shard - 1);
  } else if (shard == shape.layers + 1) {
    add_globals(tensors, shape);
  } else if (shard == shape.layers + 2) {
    add_projector(tensors, shape);
  } else {
    add_vision(tensors);
  }
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tuple(dtype_rank(a), std::string_view(a.name)) <
           std::tuple(dtype_rank(b), std::string_view(b.name));
  });
  return tensors;
}

std::string shard_name(const Shape& shape, int64_t shard) {
  const auto digits = [](int64_t number, size_t width) {
    const std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), '0') + text;
  };
  return "model-" + digits(shard, 5) + "-of-" + digits(shape.shards(), 6) + ".safetensors";
}

}  // namespace sluice::slice
