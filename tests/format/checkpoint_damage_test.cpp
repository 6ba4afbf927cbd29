// Damaged copies of the bundled checkpoint: each is refused, and the error names what is wrong.
#include <string>

#include <gtest/gtest.h>

#include "format/checkpoint.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kExperts = "language_model.model.layers.1.block_sparse_moe.experts.";

void expect_refused(const TinyCopy& copy, Code code, const std::vector<std::string>& texts) {
  const Result<Checkpoint> checkpoint = copy.open();
  ASSERT_FALSE(checkpoint.ok()) << texts.front();
  EXPECT_STREQ(code_name(checkpoint.error().code), code_name(code)) << checkpoint.error().what;
  for (const std::string& text : texts) {
    EXPECT_NE(checkpoint.error().what.find(text), std::string::npos) << checkpoint.error().what;
  }
}

// Renames a tensor in the index and in its shard, both already own copies.
void rename(const TinyCopy& copy, int shard, const std::string& from, const std::string& to) {
  edit_json(copy.path() / kIndex, [&](Json& index) {
    index["weight_map"].erase(from);
    index["weight_map"][to] = TinyCopy::shard_name(shard);
  });
  edit_safetensors(copy.path() / TinyCopy::shard_name(shard), [&](RawSafetensors& raw) {
    const Json entry = raw.header[from];
    raw.header.erase(from);
    raw.header[to] = entry;
  });
}

// Applies `edit` to one header entry.
void edit_entry(const TinyCopy& copy, int shard, const std::string& tensor,
                const std::function<void(Json&)>& edit) {
  edit_safetensors(copy.own_shard(shard), [&](RawSafetensors& raw) { edit(raw.header[tensor]); });
}

TEST(CheckpointDamage, AnAbsentDirectoryConfigOrModelIsNamed) {
  const Result<Checkpoint> absent = Checkpoint::open("/no/such/model", Direct::kAuto);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, Code::kIo);
  EXPECT_NE(absent.error().what.find("/no/such/model"), std::string::npos);
  {
    const TinyCopy copy;
    std::filesystem::remove(copy.path() / kIndex);
    expect_refused(copy, Code::kIo, {"neither model.safetensors.index.json nor model.safetensors"});
  }
  const TinyCopy copy;
  std::filesystem::remove(copy.path() / "config.json");
  expect_refused(copy, Code::kIo, {"config.json"});
}

TEST(CheckpointDamage, MissingShardsAreCountedAndTheFirstIsNamed) {
  const TinyCopy copy;
  std::filesystem::remove(copy.path() / TinyCopy::shard_name(4));
  std::filesystem::remove(copy.path() / TinyCopy::shard_name(7));
  expect_refused(copy, Code::kIo, {"2 of 10 shards are missing", TinyCopy::shard_name(4)});
}

TEST(CheckpointDamage, ATruncatedShardIsNamedWithItsBytes) {
  const TinyCopy copy;
  const auto path = copy.own_shard(6);
  const uint64_t whole = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, whole - 4096);
  expect_refused(copy, Code::kCorrupt,
                 {TinyCopy::shard_name(6), std::to_string(whole), std::to_string(whole - 4096)});
}

TEST(CheckpointDamage, AShardMustBeARegularFile) {
  const TinyCopy copy;
  std::filesystem::remove(copy.path() / TinyCopy::shard_name(2));
  std::filesystem::create_directory(copy.path() / TinyCopy::shard_name(2));
  expect_refused(copy, Code::kIo, {TinyCopy::shard_name(2), "not a regular file"});
}

TEST(CheckpointDamage, ATensorMissingInTheHeaderIsNamed) {
  const TinyCopy copy;
  copy.own_shard(1);
  copy.own(kIndex);
  const std::string name = "language_model.model.layers.0.mlp.up_proj.weight";
  edit_json(copy.path() / kIndex, [&](Json& index) {
    index["weight_map"]["language_model.zzz"] = TinyCopy::shard_name(1);
    index["weight_map"]["language_model.aaa"] = TinyCopy::shard_name(1);
  });
  expect_refused(copy, Code::kCorrupt,
                 {TinyCopy::shard_name(1), "\"language_model.aaa\"", "index"});
}

TEST(CheckpointDamage, ATensorMissingInTheIndexIsNamed) {
  const std::string name = "language_model.model.layers.0.mlp.up_proj.weight";
  {
    const TinyCopy copy;
    edit_json(copy.own(kIndex), [&](Json& index) { index["weight_map"].erase(name); });
    expect_refused(copy, Code::kCorrupt, {TinyCopy::shard_name(1), name, "not at all"});
  }
  const TinyCopy copy;
  edit_json(copy.own(kIndex),
            [&](Json& index) { index["weight_map"][name] = TinyCopy::shard_name(3); });
  expect_refused(copy, Code::kCorrupt, {name, "listed in " + TinyCopy::shard_name(3)});
}

TEST(CheckpointDamage, ANeededTensorInNoShardIsNamed) {
  const TinyCopy copy;
  copy.own_shard(10);
  copy.own(kIndex);
  rename(copy, 10, "language_model.model.norm.weight", "language_model.model.norm2.weight");
  expect_refused(copy, Code::kCorrupt, {"\"language_model.model.norm.weight\" is in no shard"});
}

TEST(CheckpointDamage, AnUnknownTensorInsideALayerIsRefused) {
  const TinyCopy copy;
  copy.own(kIndex);
  edit_json(copy.path() / kIndex, [](Json& index) {
    index["weight_map"]["language_model.model.layers.0.self_attn.q_proj.bias"] = "x.safetensors";
  });
  write_safetensors(copy.path() / "x.safetensors",
                    {{"language_model.model.layers.0.self_attn.q_proj.bias", "BF16", {128}}});
  expect_refused(copy, Code::kUnsupported, {"x.safetensors", "q_proj.bias"});
}

TEST(CheckpointDamage, ShapesAreCheckedAgainstTheConfig) {
  const TinyCopy copy;
  const std::string name = "language_model.model.layers.0.self_attn.k_proj.weight";
  edit_entry(copy, 1, name, [](Json& entry) { entry["shape"] = {256, 128}; });
  expect_refused(copy, Code::kCorrupt, {TinyCopy::shard_name(1), name, "[256, 128]", "[128, 256]"});
}

TEST(CheckpointDamage, AShortALogIsRefused) {
  const TinyCopy copy;
  edit_json(copy.own("config.json"), [](Json& config) {
    config["text_config"]["linear_attn_config"]["num_heads"] = 64;
    config["text_config"]["linear_attn_config"]["head_dim"] = 2;
  });
  expect_refused(copy, Code::kCorrupt, {"A_log", "[32]", "at least [64]"});
}

TEST(CheckpointDamage, DtypesAreChecked) {
  const TinyCopy copy;
  const std::string name = "language_model.model.layers.0.self_attn.k_proj.weight";
  edit_entry(copy, 1, name, [](Json& entry) { entry["dtype"] = "F16"; });
  expect_refused(copy, Code::kCorrupt, {TinyCopy::shard_name(1), name, "is F16, expected BF16"});
  const TinyCopy vector;
  const std::string bias =
      "language_model.model.layers.1.block_sparse_moe.gate.e_score_correction_bias";
  edit_entry(vector, 2, bias, [](Json& entry) {
    entry["dtype"] = "I64";
    entry["shape"] = {24};
  });
  expect_refused(vector, Code::kCorrupt, {bias, "is I64, expected BF16 or F32"});
}

TEST(CheckpointDamage, FileNamesOutsideTheDirectoryAreRefused) {
  for (const char* bad : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", ""}) {
    const TinyCopy copy;
    edit_json(copy.own(kIndex),
              [&](Json& index) { index["weight_map"]["language_model.model.norm.weight"] = bad; });
    expect_refused(copy, Code::kCorrupt,
                   {kIndex, "language_model.model.norm.weight", "\"" + std::string(bad) + "\""});
  }
}

TEST(CheckpointDamage, AnIndexThatIsNoIndexIsRefused) {
  for (const char* text :
       {"", "{}", "[]", R"({"weight_map": {}})", R"({"weight_map": []})", R"({"weight_map": "x"})",
        R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": {"b": "c"}}})",
        R"({"weight_map": {"a": "x", "a": "x"}})",
        R"({"weight_map": {"a": "x"}, "weight_map": {"b": "x"}})", R"({"weight_map": {"a": "x")"}) {
    const TinyCopy copy;
    write_file(copy.own(kIndex), text);
    expect_refused(copy, Code::kCorrupt, {kIndex});
  }
}

TEST(CheckpointDamage, AForeignPrefixNamesTheMissingTensor) {
  const TinyCopy copy;
  const auto strip = [](const std::string& name) {
    constexpr std::string_view kPrefix = "language_model.";
    return name.starts_with(kPrefix) ? "other." + name.substr(kPrefix.size()) : name;
  };
  edit_json(copy.own(kIndex), [&](Json& index) {
    Json renamed = Json::object();
    for (const auto& [name, file] : index["weight_map"].items()) renamed[strip(name)] = file;
    index["weight_map"] = renamed;
  });
  for (int shard = 1; shard <= 10; ++shard) {
    edit_safetensors(copy.own_shard(shard), [&](RawSafetensors& raw) {
      Json renamed = Json::object();
      for (const auto& [name, entry] : raw.header.items()) renamed[strip(name)] = entry;
      raw.header = renamed;
    });
  }
  expect_refused(copy, Code::kCorrupt, {"\"model.embed_tokens.weight\" is in no shard"});
}

TEST(CheckpointDamage, AnExpertWithSwappedPiecesIsNamed) {
  const TinyCopy copy;
  edit_safetensors(copy.own_shard(2), [](RawSafetensors& raw) {
    // w1 and w3 of expert 7 have the same shapes and change places.
    for (const char* suffix : {".weight_packed", ".weight_scale"}) {
      std::swap(raw.header[std::string(kExperts) + "7.w1" + suffix]["data_offsets"],
                raw.header[std::string(kExperts) + "7.w3" + suffix]["data_offsets"]);
    }
  });
  expect_refused(copy, Code::kUnsupported, {"expert 7 of layer 1", "another order"});
}

TEST(CheckpointDamage, AScatteredExpertIsNamed) {
  const TinyCopy copy;
  edit_safetensors(copy.own_shard(2), [](RawSafetensors& raw) {
    std::swap(raw.header[std::string(kExperts) + "7.w1.weight_packed"]["data_offsets"],
              raw.header[std::string(kExperts) + "9.w1.weight_packed"]["data_offsets"]);
  });
  expect_refused(copy, Code::kCorrupt, {"expert 7 of layer 1 is not contiguous"});
}

TEST(CheckpointDamage, AMissingPieceOfAnExpertIsNamed) {
  const TinyCopy copy;
  copy.own_shard(2);
  copy.own(kIndex);
  const std::string name = std::string(kExperts) + "47.w3.weight_scale";
  rename(copy, 2, name, "vision_tower.x");
  expect_refused(copy, Code::kCorrupt, {"\"" + name + "\" is in no shard"});
}

TEST(CheckpointDamage, ExpertsOfTwoFormatsAreRefused) {
  const TinyCopy copy;
  copy.own_shard(2);
  copy.own(kIndex);
  rename(copy, 2, std::string(kExperts) + "3.w1.weight_packed",
         std::string(kExperts) + "3.w1.weight");
  expect_refused(copy, Code::kCorrupt, {"3.w1.weight\"", "MXFP4"});
}

TEST(CheckpointDamage, ExpertShapesDtypesAndIdsAreChecked) {
  {
    const TinyCopy copy;
    const std::string name = std::string(kExperts) + "2.w2.weight_scale";
    edit_entry(copy, 2, name, [](Json& entry) { entry["shape"] = {3, 128}; });
    expect_refused(copy, Code::kCorrupt, {name, "[3, 128]", "[128, 3]"});
  }
  {
    const TinyCopy copy;
    const std::string name = std::string(kExperts) + "2.w2.weight_packed";
    edit_entry(copy, 2, name, [](Json& entry) { entry["dtype"] = "I8"; });
    expect_refused(copy, Code::kCorrupt, {name, "is I8, expected U8"});
  }
  // One expert more than the 48 of config.json, in a shard that is read before the others.
  const TinyCopy copy;
  const std::string name = std::string(kExperts) + "48.w1.weight_packed";
  edit_json(copy.own(kIndex), [&](Json& index) { index["weight_map"][name] = "a.safetensors"; });
  write_safetensors(copy.path() / "a.safetensors", {{name, "U8", {96, 64}}});
  expect_refused(copy, Code::kCorrupt, {"a.safetensors", name, "config.json does not have"});
}

TEST(CheckpointDamage, PackedWidthsMustBeMultiplesOfABlock) {
  const TinyCopy copy;
  edit_json(copy.own("config.json"),
            [](Json& config) { config["text_config"]["moe_intermediate_size"] = 100; });
  // The shared experts, whose width follows the same key, come later in the shard than experts do.
  edit_safetensors(copy.own_shard(2), [](RawSafetensors& raw) {
    Json header = Json::object();
    const std::string first = std::string(kExperts) + "0.w1.weight_packed";
    header[first] = raw.header[first];
    for (const auto& [name, entry] : raw.header.items()) header[name] = entry;
    raw.header = header;
  });
  const Result<Checkpoint> checkpoint = copy.open();
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.error().code, Code::kInvalid) << checkpoint.error().what;
  EXPECT_NE(checkpoint.error().what.find("moe_intermediate_size 100 must be multiples of 32"),
            std::string::npos)
      << checkpoint.error().what;
}

}  // namespace
}  // namespace sluice
