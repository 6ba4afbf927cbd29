// Opening: the choices left to auto, the floor that a refusal names, and options out of range.
#include "engine/plan.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/tiny_engine.h"

namespace sluice {
namespace {

std::string refusal(const EngineOptions& options) {
  const auto engine = Engine::open(options);
  return engine.ok() ? "opened" : engine.error().what;
}

TEST(Plan, TheFloorThatARefusalNamesIsEnoughAndNotAByteTooMuch) {
  constexpr std::string_view kAtLeast = "at least ";
  for (const int64_t context : {0, 100, 4096}) {
    EngineOptions options = tiny_options();
    options.context_positions = context;
    options.ram_bytes = 1000;
    const std::string what = refusal(options);
    const size_t found = what.find(kAtLeast);
    ASSERT_NE(found, std::string::npos) << what;
    options.ram_bytes = std::stoull(what.substr(found + kAtLeast.size()));
    EXPECT_EQ(refusal(options), "opened") << context;
    options.ram_bytes -= 1;
    EXPECT_NE(refusal(options), "opened") << context;
  }
}

TEST(Plan, AutomaticContextGrowsWithMemoryUpToTheModels) {
  EngineOptions options = tiny_options();
  options.context_positions = 0;
  options.ram_bytes = uint64_t{8} << 30;
  const auto report = make_plan_report(options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().plan.context_positions, 4096);  // tiny-k3's own limit
}

TEST(Plan, MemoryAndThreadsDefaultToTheHosts) {
  EngineOptions options;
  options.model = tiny_path();
  const auto report = make_plan_report(options);
  ASSERT_TRUE(report.ok());
  EXPECT_GE(report.value().plan.threads, 1);
  EXPECT_GT(report.value().plan.memory.ram_bytes, uint64_t{64} << 20);
}

TEST(Plan, ReportCountsWhatATokenCostsTheDrive) {
  EngineOptions options = tiny_options();
  const auto roomy = make_plan_report(options);
  ASSERT_TRUE(roomy.ok());
  EXPECT_EQ(roomy.value().spine_streamed_bytes, 0u);
  EXPECT_EQ(roomy.value().work.experts_resident, 1.0);
  EXPECT_EQ(roomy.value().n_experts, 8 * 48);
  EXPECT_EQ(roomy.value().experts_per_token, 8 * 8);
  EXPECT_EQ(roomy.value().bytes_per_token(1.0), 0.0);
  // MXFP4: three matrices of 128 x 96 with half a byte a weight and a byte for each 32.
  EXPECT_EQ(roomy.value().expert_record_bytes, 3u * 128 * 96 * 17 / 32);
  EXPECT_EQ(roomy.value().bytes_per_token(0.5), 32.0 * 3 * 128 * 96 * 17 / 32);

  options.ram_bytes = roomy.value().plan.memory.floor_bytes;
  const auto tight = make_plan_report(options);
  ASSERT_TRUE(tight.ok());
  EXPECT_GT(tight.value().spine_streamed_bytes, 7000000u);
  EXPECT_LT(tight.value().work.experts_resident, 0.2);
  EXPECT_EQ(tight.value().fingerprint, roomy.value().fingerprint);
}

TEST(Plan, OptionsOutOfRangeAreRefusedByName) {
  const auto with = [](auto change) {
    EngineOptions options = tiny_options();
    change(options);
    return refusal(options);
  };
  EXPECT_NE(with([](auto& o) { o.context_positions = 4097; }).find("--context"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.threads = -1; }).find("--threads"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.qkv_norm_eps = -1.0f; }).find("eps"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.spine = SpineChoice::kInt8; }).find("--spine bf16"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.isa = "mmx"; }).find("mmx"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.expert_cache_bytes = 10; }).find("--expert-cache"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.model = "/nonexistent"; }).find("/nonexistent"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
