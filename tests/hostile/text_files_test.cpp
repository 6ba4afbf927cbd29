// JSON and tokenizer files whose text is hostile: deep nesting, repeated keys, line ends, marks.
#include "hostile/refusal.h"

namespace sluice {
namespace {

constexpr size_t kDeep = 1'000'000;

TEST(HostileText, AMillionBracketsAreRefusedEverywhere) {
  for (const std::string& deep :
       {std::string(kDeep, '['), std::string(kDeep, '[') + std::string(kDeep, ']')}) {
    for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json"}) {
      const TinyCopy copy;
      replace_file(copy, name, "{\"a\": " + deep + "}");
      expect_one_line(run_one_token(copy.path()), name);
    }
    const TinyCopy shard;
    std::filesystem::remove(shard.path() / TinyCopy::shard_name(2));
    write_raw_safetensors(shard.path() / TinyCopy::shard_name(2), "{\"a\": " + deep + "}", "");
    expect_refused(shard, TinyCopy::shard_name(2));
    const TinyCopy index;
    replace_file(index, kIndexName, "{\"weight_map\": " + deep + "}");
    expect_refused(index, kIndexName);
  }
}

TEST(HostileText, DeepMetadataOfAnIndexIsPassedOver) {
  const TinyCopy copy;
  std::string text = read_file(copy.path() / kIndexName);
  text.insert(text.find('{') + 1,
              "\"deep\": " + std::string(kDeep, '[') + std::string(kDeep, ']') + ", ");
  replace_file(copy, kIndexName, text);
  EXPECT_TRUE(copy.open().ok());
}

TEST(HostileText, DeepMessagesAreRefused) {
  const TempDirectory directory;
  const auto path = directory.path() / "messages.json";
  write_file(path, "{\"messages\": " + std::string(kDeep, '[') + std::string(kDeep, ']') + "}");
  expect_one_line(cli({"run", "--messages", path}), "messages.json");
}

TEST(HostileText, RepeatedKeysAreRefused) {
  const TinyCopy config;
  std::string text = read_file(config.path() / "config.json");
  text.insert(text.find("\"vocab_size\""), "\"vocab_size\": 4096, ");
  replace_file(config, "config.json", text);
  expect_refused(config, "\"vocab_size\" appears twice");
  const TinyCopy shard;
  const auto path = shard.own_shard(10);
  RawSafetensors raw = read_raw_safetensors(path);
  const std::string header = dump_json(raw.header);
  const std::string entry = dump_json(raw.header["language_model.model.norm.weight"]);
  write_raw_safetensors(
      path, "{\"language_model.model.norm.weight\":" + entry + "," + header.substr(1), raw.payload);
  expect_refused(shard, "\"language_model.model.norm.weight\" appears twice");
}

TEST(HostileText, NamesWithLineEndsStillGiveOneLine) {
  const TinyCopy copy;
  edit_json(copy.own(kIndexName), [](Json& index) {
    index["weight_map"]["language_model.model.layers.0.self_attn.\nfoo\r\n"] = "x\ny";
  });
  const ProcessResult result = run_one_token(copy.path());
  expect_one_line(result, "shards are missing");
}

TEST(HostileText, AVocabularyWithCrLfIsTheSame) {
  const TinyCopy copy;
  std::string text = read_file(copy.path() / "tiktoken.model");
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  replace_file(copy, "tiktoken.model", crlf + "\r\n\r\n");
  const std::vector<std::string> prompt = {"--prompt", "The capital of France is", "--max-new",
                                           "2"};
  std::vector<std::string> damaged = {"run", copy.path()}, whole = {"run", tiny_k3()};
  damaged.insert(damaged.end(), prompt.begin(), prompt.end());
  whole.insert(whole.end(), prompt.begin(), prompt.end());
  const ProcessResult result = cli(damaged);
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(result.out, cli(whole).out);
}

TEST(HostileText, AVocabularyWithAMarkAnEmptyLineOrZeroBytesNamesTheLine) {
  const std::string text = read_file(tiny_k3() / "tiktoken.model");
  const size_t second = text.find('\n') + 1;
  const auto refuse = [](const std::string& damaged, const std::string& named) {
    const TinyCopy copy;
    replace_file(copy, "tiktoken.model", damaged);
    expect_one_line(run_one_token(copy.path()), named);
  };
  refuse("\xEF\xBB\xBF" + text, "tiktoken.model line 1");
  refuse(text.substr(0, second) + "\n" + text.substr(second), "tiktoken.model line 2");
  refuse(text.substr(0, second) + std::string(1, '\0') + text.substr(second),
         "tiktoken.model line 2");
  refuse(std::string(1 << 20, '\n'), "tiktoken.model");
  refuse(std::string(1 << 20, 'A'), "tiktoken.model line 1");
  refuse(text + "AAAA 99999999999999999999999\n", "tiktoken.model line");
  refuse(text + "AAAA -1\n", "tiktoken.model line");
}

TEST(HostileText, AMarkBeforeJsonChangesNothing) {
  const TinyCopy copy;
  replace_file(copy, "config.json", "\xEF\xBB\xBF" + read_file(tiny_k3() / "config.json"));
  const Result<Checkpoint> opened = copy.open();
  EXPECT_TRUE(opened.ok()) << opened.error().what;
}

}  // namespace
}  // namespace sluice
