// Every tensor of a checkpoint as a role, with its name, shape and dtypes (spec 2.3, 11.1): the one
// place where names are spelled. Pure functions over tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "format/config.h"
#include "format/safetensors.h"

namespace sluice {

// What a tensor is for. The names are the checkpoint's.
enum class Role : uint8_t {
  // Outside the layers.
  kEmbedTokens,
  kLmHead,
  kFinalNorm,
  kOutputAttnResNorm,
  kOutputAttnResProj,
  // Every layer.
  kInputLayernorm,
  kPostAttentionLayernorm,
  kSelfAttentionResNorm,
  kSelfAttentionResProj,
  kMlpResNorm,
  kMlpResProj,
  // KDA (kGProj and kOProj are shared with MLA).
  kQProj,
  kKProj,
  kVProj,
  kGProj,
  kGAProj,
  kGBProj,
  kOProj,
  kFAProj,
  kFBProj,
  kBProj,
  kALog,
  kDtBias,
  kQConv,
  kKConv,
  kVConv,
  kONorm,
  // MLA (without q_lora it uses kQProj).
  kQAProj,
  kQALayernorm,
  kQBProj,
  kKvAProj,
  kKvALayernorm,
  kKvBProj,
  // Dense MLP.
  kMlpGateProj,
  kMlpUpProj,
  kMlpDownProj,
  // Latent MoE.
  kRouter,
  kRouterBias,
  kRoutedExpertDownProj,
  kRoutedExpertNorm,
  kRoutedExpertUpProj,
  kSharedGateProj,
  kSharedUpProj,
  kSharedDownProj,
  kCount
};
constexpr size_t kRoles = static_cast<size_t>(Role::kCount);

// The six (MXFP4) or three (bf16) pieces of one routed expert. w1 = gate, w3 = up, w2 = down.
enum class ExpertPiece : uint8_t { kW1, kW1Scale, kW2, kW2Scale, kW3, kW3Scale, kCount };
constexpr size_t kExpertPieces = static_cast<size_t>(ExpertPiece::kCount);

// A matrix is streamed and multiplied as stored; a vector is widened to fp32 at open and resident.
enum class TensorKind : uint8_t { kMatrix, kVector };

struct TensorSpec {
  Role role;
  std::string name;            // without the checkpoint's prefix
  std::vector<int64_t> shape;  // A_log may be stored longer (spec 12.1): `padded` allows it
  bool padded = false;
  bool optional = false;  // lm_head of a checkpoint with tied embeddings
  TensorKind kind = TensorKind::kMatrix;
};

// What must exist outside the layers, and in one layer, for `config`.
std::vector<TensorSpec> global_tensors(const Config& config);
std::vector<TensorSpec> layer_tensors(const Config& config, LayerId layer);

// A parsed name "<prefix>model.layers.N.block_sparse_moe.experts.E.wI.{weight,weight_packed,
// weight_scale}", or nothing when the name is no expert's.
struct ExpertName {
  LayerId layer;
  ExpertId expert;
  ExpertPiece piece;
  bool packed;  // weight_packed or weight_scale: MXFP4
};
std::optional<ExpertName> parse_expert_name(std::string_view name, std::string_view prefix);
// The reverse, without a prefix.
std::string expert_piece_name(ExpertKey key, ExpertPiece piece, bool packed);

// The layer of a name "<prefix>model.layers.N.*", or nothing.
std::optional<LayerId> parse_layer_name(std::string_view name, std::string_view prefix);

}  // namespace sluice
