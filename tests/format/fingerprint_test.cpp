// The fingerprint follows what decides the logits, and nothing else.
#include "format/fingerprint.h"

#include <string>

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {
namespace {

std::string fingerprint_of(const std::filesystem::path& directory) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory, Direct::kAuto);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  Result<std::string> print = fingerprint(checkpoint.value());
  EXPECT_TRUE(print.ok()) << print.error().what;
  return std::move(print).value();
}

std::string number(uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string text(const std::string& bytes) { return number(bytes.size()) + bytes; }

TEST(Fingerprint, IsTheHashOfTheDocumentedBytes) {
  std::vector<std::pair<std::string, std::string>> tensors;
  std::string shards = number(10);
  for (int shard = 1; shard <= 10; ++shard) {
    const std::string name = TinyCopy::shard_name(shard);
    const std::string bytes = read_file(tiny_k3() / name);
    const RawSafetensors raw = read_raw_safetensors(tiny_k3() / name);
    for (const auto& [tensor, entry] : raw.header.items()) {
      if (tensor != "__metadata__") tensors.emplace_back(tensor, name);
    }
    shards += text(name) + number(bytes.size()) +
              text(bytes.substr(0, bytes.size() - raw.payload.size()));
  }
  std::sort(tensors.begin(), tensors.end());
  std::string all =
      "sluice checkpoint 1\n" + text(read_file(tiny_k3() / "config.json")) + number(tensors.size());
  for (const auto& [tensor, file] : tensors) all += text(tensor) + text(file);
  Sha256 sha;
  sha.update(all + shards);
  EXPECT_EQ(fingerprint_of(tiny_k3()), sha.hex());
}

TEST(Fingerprint, IsTheSameInAnotherDirectory) {
  const TinyCopy copy;
  EXPECT_EQ(fingerprint_of(copy.path()), fingerprint_of(tiny_k3()));
  EXPECT_EQ(fingerprint_of(copy.path()).size(), 64u);
}

TEST(Fingerprint, ChangesWithTheConfig) {
  const TinyCopy copy;
  edit_json(copy.own("config.json"),
            [](Json& config) { config["text_config"]["routed_scaling_factor"] = 1.5; });
  EXPECT_NE(fingerprint_of(copy.path()), fingerprint_of(tiny_k3()));
}

TEST(Fingerprint, ChangesWithAShardsHeader) {
  const TinyCopy copy;
  edit_safetensors(copy.own_shard(3),
                   [](RawSafetensors& raw) { raw.header["__metadata__"]["format"] = "np"; });
  EXPECT_NE(fingerprint_of(copy.path()), fingerprint_of(tiny_k3()));
}

TEST(Fingerprint, DoesNotDependOnTheGenerationConfigOrTheIndexText) {
  const TinyCopy copy;
  write_file(copy.own("generation_config.json"), R"({"eos_token_id": 1})");
  edit_json(copy.own("model.safetensors.index.json"), [](Json& index) {
    Json reversed = Json::object();
    const Json map = index["weight_map"];
    for (auto item = map.rbegin(); item != map.rend(); ++item) reversed[item.key()] = item.value();
    index = {{"weight_map", reversed}};
  });
  EXPECT_EQ(fingerprint_of(copy.path()), fingerprint_of(tiny_k3()));
}

}  // namespace
}  // namespace sluice
