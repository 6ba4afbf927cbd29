// Names of experts and layers.
#include "format/tensor_names.h"

#include <set>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

TEST(TensorNames, EveryPieceOfAnExpertIsRecognised) {
  for (const bool packed : {true, false}) {
    for (size_t p = 0; p < kExpertPieces; ++p) {
      const auto piece = static_cast<ExpertPiece>(p);
      const bool is_scale = p % 2 == 1;
      if (is_scale && !packed) continue;
      const std::string name =
          "language_model." + expert_piece_name({LayerId{12}, ExpertId{895}}, piece, packed);
      const auto parsed = parse_expert_name(name, "language_model.");
      ASSERT_TRUE(parsed.has_value()) << name;
      EXPECT_EQ(parsed->layer.v, 12);
      EXPECT_EQ(parsed->expert.v, 895);
      EXPECT_EQ(parsed->piece, piece);
      EXPECT_EQ(parsed->packed, packed);
    }
  }
  const auto up =
      parse_expert_name("model.layers.1.block_sparse_moe.experts.0.w3.weight_packed", "");
  ASSERT_TRUE(up.has_value());
  EXPECT_EQ(up->piece, ExpertPiece::kW3);
}

TEST(TensorNames, OtherNamesAreNoExperts) {
  for (const char* name : {"", "model.layers.", "model.layers.1.block_sparse_moe.gate.weight",
                           "model.layers.1.block_sparse_moe.experts.0.w4.weight",
                           "model.layers.1.block_sparse_moe.experts.0.w1.weight_shape",
                           "model.layers.1.block_sparse_moe.experts.0.w1.weight_packed2",
                           "model.layers.1.block_sparse_moe.experts.00.w1.weight",
                           "model.layers.1.block_sparse_moe.experts.-1.w1.weight",
                           "model.layers.+1.block_sparse_moe.experts.0.w1.weight",
                           "model.layers.99999999999.block_sparse_moe.experts.0.w1.weight",
                           "x.model.layers.1.block_sparse_moe.experts.0.w1.weight",
                           "model.layers.1.block_sparse_moe.shared_experts.gate_proj.weight"}) {
    EXPECT_FALSE(parse_expert_name(name, "").has_value()) << name;
  }
  EXPECT_FALSE(
      parse_expert_name("model.layers.1.block_sparse_moe.experts.0.w1.weight", "language_model.")
          .has_value());
}

TEST(TensorNames, TheLayerOfANameIsFound) {
  EXPECT_EQ(parse_layer_name("model.layers.17.mlp.x", "")->v, 17);
  EXPECT_EQ(parse_layer_name("p.model.layers.0.mlp.x", "p.")->v, 0);
  EXPECT_FALSE(parse_layer_name("model.layers.17", "").has_value());
  EXPECT_FALSE(parse_layer_name("model.norm.weight", "").has_value());
}

TEST(TensorNames, NoNameAndNoRoleIsUsedTwiceInALayer) {
  const Config config = parse_config(read_file(tiny_k3() / "config.json"), "t").value();
  std::set<std::string> names;
  size_t n_specs = 0;
  for (int32_t layer = -1; layer < config.n_layers; ++layer) {
    const auto specs = layer < 0 ? global_tensors(config) : layer_tensors(config, LayerId{layer});
    std::set<Role> roles;
    for (const TensorSpec& spec : specs) {
      EXPECT_TRUE(roles.insert(spec.role).second) << spec.name;
      names.insert(spec.name);
      ++n_specs;
    }
  }
  EXPECT_EQ(names.size(), n_specs);
}

}  // namespace
}  // namespace sluice
