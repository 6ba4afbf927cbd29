// Numbers that lie: offsets, shapes and vocabularies that overflow, overlap or do not agree.
#include <fstream>

#include "engine/engine.h"
#include "hostile/refusal.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNorm = "language_model.model.norm.weight";

// Applies `edit` to one entry of shard 10's header, and expects the shard and tensor to be named.
void expect_entry_refused(const std::function<void(Json&)>& edit) {
  const TinyCopy copy;
  edit_safetensors(copy.own_shard(10), [&](RawSafetensors& raw) { edit(raw.header[kNorm]); });
  expect_refused(copy, TinyCopy::shard_name(10));
}

TEST(HostileSizes, OffsetsThatOverflowOverlapOrRunAway) {
  constexpr uint64_t kTwo63 = uint64_t{1} << 63;
  using Offsets = std::pair<uint64_t, uint64_t>;
  for (const auto& [begin, end] : {Offsets{0, kTwo63}, Offsets{kTwo63 - 512, kTwo63 - 1},
                                   Offsets{UINT64_MAX - 511, UINT64_MAX}, Offsets{UINT64_MAX, 512},
                                   Offsets{1, 513}, Offsets{512, 0}}) {
    expect_entry_refused([&](Json& entry) { entry["data_offsets"] = {begin, end}; });
  }
}

TEST(HostileSizes, ShapesWhoseProductOverflows) {
  for (const Json& shape :
       {Json{int64_t{1} << 62, 4}, Json{int64_t{1} << 32, int64_t{1} << 32}, Json{INT64_MAX, 2},
        Json{uint64_t{1} << 63}, Json{uint64_t{1} << 63, 2, 256}, Json{-256}, Json{1, 256}, Json{0},
        Json::array()}) {
    expect_entry_refused([&](Json& entry) { entry["shape"] = shape; });
  }
}

TEST(HostileSizes, AHeaderLengthThatLies) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{99'999'999}, uint64_t{1} << 32,
                                uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    const TinyCopy copy;
    std::fstream file(copy.own_shard(3), std::ios::binary | std::ios::in | std::ios::out);
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file.close();
    expect_refused(copy, TinyCopy::shard_name(3));
  }
}

TEST(HostileSizes, DimensionsOfAConfigThatNoMemoryHolds) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_experts", "vocab_size",
                          "intermediate_size", "moe_intermediate_size", "kv_lora_rank"}) {
    for (const Json& value : {Json(INT64_MAX), Json(UINT64_MAX), Json(-1), Json(1e300), Json(0)}) {
      const TinyCopy copy;
      edit_json(copy.own("config.json"), [&](Json& config) { config["text_config"][key] = value; });
      expect_refused(copy, key);
    }
  }
}

// The largest dimensions that config.json may say allocate nothing before a shard contradicts them.
TEST(HostileSizes, TheLargestDimensionsEndAtTheShards) {
  const TinyCopy copy;
  edit_json(copy.own("config.json"), [](Json& config) {
    config["text_config"]["num_experts"] = 8192;
    config["text_config"]["moe_intermediate_size"] = 1 << 17;
    config["text_config"]["hidden_size"] = 1 << 17;
    config["text_config"]["vocab_size"] = 1 << 24;
  });
  expect_refused(copy, TinyCopy::shard_name(1));
}

TEST(HostileSizes, AVocabularyThatTheEmbeddingDoesNotHave) {
  for (const int64_t vocab_size : {4095, 4097, 8192}) {
    const TinyCopy copy;
    edit_json(copy.own("config.json"), [&](Json& config) {
      config["text_config"]["vocab_size"] = vocab_size;
      config["pad_token_id"] = nullptr;
      config["text_config"]["pad_token_id"] = nullptr;
    });
    expect_refused(copy, "[4096, 256]");
  }
}

TEST(HostileSizes, RanksThatMakeAnotherVocabularyThanTheConfig) {
  const std::string text = read_file(tiny_k3() / "tiktoken.model");
  const size_t last_line = text.rfind('\n', text.size() - 2) + 1;
  for (const std::string& other : {text.substr(0, last_line), text + "/v79/P38 3840\n"}) {
    const TinyCopy copy;
    replace_file(copy, "tiktoken.model", other);
    replace_file(copy, "tokenizer_config.json",
                 R"({"added_tokens_decoder": {"3842": {"content": "<|end_of_msg|>"},)"
                 R"("3843": {"content": "<|open|>"}, "3844": {"content": "<|close|>"},)"
                 R"("3845": {"content": "<|sep|>"}}})");
    EngineOptions options;
    options.model = copy.path();
    options.threads = 1;
    const auto engine = Engine::open(options);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, Code::kInvalid) << engine.error().what;
    EXPECT_NE(engine.error().what.find("vocab_size 4096"), std::string::npos)
        << engine.error().what;
    expect_one_line(run_one_token(copy.path()), "vocab_size 4096");
  }
}

// A shard with a sparse tensor in front, so that the byte `mark` of the file falls into its
// payload.
void put_mark_inside(const fs::path& path, uint64_t mark) {
  RawSafetensors raw = read_raw_safetensors(path);
  const uint64_t big = mark - raw.payload.size() / 2;
  Json header = Json::object();
  header["vision_tower.big"] = {
      {"dtype", "U8"}, {"shape", {big}}, {"data_offsets", {uint64_t{0}, big}}};
  for (const auto& [name, entry] : raw.header.items()) {
    header[name] = entry;
    if (!entry.contains("data_offsets")) continue;
    for (Json& offset : header[name]["data_offsets"]) offset = offset.get<uint64_t>() + big;
  }
  const std::string text = dump_json(header);
  write_raw_safetensors(path, text, "");
  const uint64_t begin = 8 + text.size() + big;
  fs::resize_file(path, begin + raw.payload.size());
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(begin));
  file.write(raw.payload.data(), std::ssize(raw.payload));
  CHECK(file.good());
}

TEST(HostileSizes, TensorsBehindTwoAndFourGibibytesReadTheSame) {
  const std::vector<std::string> prompt = {"--prompt", "The capital of France is", "--max-new", "4",
                                           "--json"};
  const TinyCopy copy;
  edit_json(copy.own(kIndexName), [](Json& index) {
    index["weight_map"]["vision_tower.big"] = TinyCopy::shard_name(10);
  });
  std::vector<std::string> whole = {"run", tiny_k3()}, moved = {"run", copy.path()};
  whole.insert(whole.end(), prompt.begin(), prompt.end());
  moved.insert(moved.end(), prompt.begin(), prompt.end());
  const Json expected = only_object(cli(whole));
  // Shard 10 holds the embedding and the head, shard 2 experts.
  for (const int shard : {10, 2}) {
    for (const uint64_t mark : {uint64_t{1} << 31, uint64_t{1} << 32}) {
      edit_json(copy.path() / kIndexName, [&](Json& index) {
        index["weight_map"]["vision_tower.big"] = TinyCopy::shard_name(shard);
      });
      put_mark_inside(copy.own_shard(shard), mark);
      const Json reply = only_object(cli(moved));
      EXPECT_EQ(reply["ids"], expected["ids"]) << shard << " " << mark;
    }
    copy.own_shard(shard);
  }
}

}  // namespace
}  // namespace sluice
