// The check of weights against published numbers, on tiny-k3 with its goldens as the publication.
#include "engine/anchors.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "format/tiny_copy.h"
#include "golden/golden_file.h"

namespace sluice {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr int64_t kLayers = 9;

EngineOptions options_for(const std::filesystem::path& model) {
  EngineOptions options;
  options.model = model;
  options.ram_bytes = uint64_t{256} << 20;
  options.threads = 1;
  return options;
}

// What raw_planet's goldens say, which were made by another program.
AnchorTable tiny_anchors() {
  const GoldenFile goldens =
      GoldenFile::open(tiny_k3() / "goldens.json", tiny_k3() / "goldens.safetensors").value();
  const Json* prompt = nullptr;
  for (const Json& each : goldens.prompts) {
    if (each["name"] == "raw_planet") prompt = &each;
  }
  CHECK(prompt != nullptr);
  AnchorTable table;
  table.model = "tiny-k3";
  table.hidden_size = 256;
  table.vocab_size = 4096;
  table.n_experts = 48;
  table.ids = (*prompt)["ids"].get<std::vector<TokenId>>();
  const std::vector<float>& hidden = goldens.tensors.at("raw_planet.hidden").floats;
  const size_t layer = hidden.size() / kLayers;
  for (size_t begin = 0; begin < hidden.size(); begin += layer) {
    double largest = 0;
    for (size_t i = begin; i < begin + layer; ++i)
      largest = std::max<double>(largest, std::abs(hidden[i]));
    table.prefix_max.push_back(largest);
  }
  const std::vector<float>& all = goldens.tensors.at("raw_planet.logits").floats;
  const std::vector<float> last(all.end() - table.vocab_size, all.end());
  const auto greedy = (*prompt)["bf16"]["greedy"].get<std::vector<TokenId>>();
  table.argmax = greedy[0];
  table.next = greedy[1];
  table.mean_logit = std::accumulate(last.begin(), last.end(), 0.0) / double(last.size());
  for (const TokenId id : {greedy[0], 0, 1, 4095}) {
    table.logits.push_back({id, last[static_cast<size_t>(id)]});
  }
  return table;
}

AnchorReport check(const std::filesystem::path& model, int64_t n_layers_max,
                   const AnchorTable& table) {
  auto report = check_anchors(options_for(model), n_layers_max, table, nullptr);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().what);
  return report.ok() ? std::move(report).value() : AnchorReport{};
}

std::vector<std::string> failed(const AnchorReport& report) {
  std::vector<std::string> lines;
  for (const AnchorLine& line : report.lines) {
    if (!line.pass()) lines.push_back(line.name);
  }
  return lines;
}

// tiny-k3 with only the shards of layers 0, 1 and of all that is outside the layers.
class TwoLayers {
 public:
  TwoLayers() {
    for (int shard = 3; shard <= 9; ++shard) {
      std::filesystem::remove(copy_.path() / TinyCopy::shard_name(shard));
    }
  }
  const TinyCopy& copy() const { return copy_; }

 private:
  TinyCopy copy_;
};

TEST(Anchors, AWholeModelIsComparedLayerByLayerAndByItsLogits) {
  const AnchorReport report = check(tiny_k3(), kAll, tiny_anchors());
  EXPECT_EQ(report.n_layers, kLayers);
  EXPECT_EQ(report.n_layers_configured, kLayers);
  EXPECT_EQ(report.lines.size(), 9u + 2 + 4 + 1);
  EXPECT_EQ(failed(report), std::vector<std::string>{});
}

TEST(Anchors, LayersWhoseShardsAreThereAreEnough) {
  const TwoLayers two;
  const AnchorReport report = check(two.copy().path(), kAll, tiny_anchors());
  EXPECT_EQ(report.n_layers, 2);
  EXPECT_EQ(report.n_layers_configured, kLayers);
  EXPECT_EQ(report.lines.size(), 2u);
  EXPECT_TRUE(report.pass());
  // The dense layer by itself: a model without any routed expert.
  EXPECT_EQ(check(two.copy().path(), 1, tiny_anchors()).lines.size(), 1u);
}

TEST(Anchors, FewerLayersThanThereAreCanBeAskedFor) {
  const AnchorReport report = check(tiny_k3(), 4, tiny_anchors());
  EXPECT_EQ(report.lines.size(), 4u);
  EXPECT_TRUE(report.pass());
}

TEST(Anchors, ADifferenceIsReportedOnItsLine) {
  AnchorTable table = tiny_anchors();
  table.prefix_max[3] *= 1 + 2 * kPrefixTolerance;
  table.mean_logit += 2 * kLogitTolerance;
  table.logits[1].logit = std::nan("");
  table.next += 1;
  const std::vector<std::string> expected = {"layer 3 max|prefix|", "mean of all logits",
                                             "logit of 0",
                                             "argmax after " + std::to_string(table.argmax)};
  EXPECT_EQ(failed(check(tiny_k3(), kAll, table)), expected);
}

TEST(Anchors, AWrongWeightIsSeen) {
  const TwoLayers two;
  const std::filesystem::path shard = two.copy().own_shard(2);
  const auto size = std::filesystem::file_size(shard);
  std::fstream file(shard, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(size / 2));
  file << std::string(size / 4, '\0');
  file.close();
  EXPECT_EQ(failed(check(two.copy().path(), kAll, tiny_anchors())),
            std::vector<std::string>{"layer 1 max|prefix|"});
}

TEST(Anchors, AnotherModelIsRefused) {
  const auto report = check_anchors(options_for(tiny_k3()), kAll, k3_anchors(), nullptr);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kUnsupported);
  EXPECT_NE(report.error().what.find("only for the released Kimi K3"), std::string::npos);
}

TEST(Anchors, AreCancelledBetweenLayers) {
  const std::atomic<bool> stop{true};
  const auto report = check_anchors(options_for(tiny_k3()), kAll, tiny_anchors(), &stop);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kCancelled);
}

TEST(Anchors, OfKimiK3AgreeWithThemselves) {
  const AnchorTable table = k3_anchors();
  ASSERT_EQ(table.prefix_max.size(), 93u);
  // The residual restarts with every twelfth layer: no maximum is carried over.
  for (size_t layer = 12; layer < 93; layer += 12) {
    EXPECT_LT(table.prefix_max[layer], table.prefix_max[layer - 1]) << layer;
  }
  const auto best = std::ranges::max_element(table.logits, {}, &LogitAnchor::logit);
  EXPECT_EQ(best->id, table.argmax);
}

}  // namespace
}  // namespace sluice
