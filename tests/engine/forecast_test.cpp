// The forecast beside runs of K3 that others have published (docs/PERFORMANCE.md), and what it must do
// when the drive or the arithmetic gets faster.
#include "engine/forecast.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr double kExpertBytes = 17'547'264;
constexpr int64_t kLayers = 93;
constexpr double kMoeLayers = kLayers - 1;
constexpr double kAllExpertBytes = kMoeLayers * 896 * kExpertBytes;
constexpr double kUnbounded = 1e30;

// K3 with a spine of `spine_bytes` that is streamed (0: resident). Rates of `unit_machine` make one
// "byte" of weights a second of arithmetic: `before_s` in all layers ahead of the router, `experts_s` in
// the sixteen experts of all layers.
ModelWork k3(double spine_bytes, double before_s, double experts_s) {
  ModelWork work;
  for (int64_t i = 0; i < kLayers; ++i) {
    LayerWork layer;
    layer.moe = i > 0;
    layer.streamed_bytes = spine_bytes / kLayers;
    layer.before.bytes[0] = before_s / kLayers;
    work.layers.push_back(layer);
  }
  work.expert.bytes[0] = experts_s / (kMoeLayers * 16);
  work.expert_read_bytes = kExpertBytes;
  work.n_experts = 896;
  work.n_experts_per_token = 16;
  work.rows_max = 512;
  return work;
}

Machine unit_machine(double drive_bytes_s) {
  Machine machine;
  machine.rates.row_bytes_s.fill(1.0);
  machine.rates.flops_s.fill(kUnbounded);
  machine.rates.attend_flops_s = kUnbounded;
  machine.rates.state_bytes_s = kUnbounded;
  machine.drive_bytes_s = drive_bytes_s;
  return machine;
}

PassForecast one_token(const ModelWork& work, const Machine& machine, double hit) {
  return forecast_pass(work, machine, {.distinct_experts = 16, .hit = hit});
}

struct Published {
  const char* name;
  double drive_bytes_s, cache_bytes, before_s, experts_s, tok_s;
};

TEST(Forecast, ComesWithinFifteenPercentOfPublishedDecodeRates) {
  const Published runs[] = {
      {"colibri, 8 GB of experts", 7.3e9, 8e9, 0.37, 0.76, 0.248},
      {"colibri, 102 GB of experts", 7.3e9, 102e9, 0.37, 0.76, 0.446},
      {"colibri, 121 GB of experts", 7.3e9, 121e9, 0.37, 0.76, 0.476},
      {"kimi-k3-in-c, no cache", 4.6e9, 0, 0, 0, 0.179},
  };
  for (const Published& run : runs) {
    const PassForecast pass = one_token(k3(0, run.before_s, run.experts_s),
                                        unit_machine(run.drive_bytes_s),
                                        expected_hit(run.cache_bytes / kAllExpertBytes));
    const double ratio = 1.0 / pass.seconds / run.tok_s;
    EXPECT_GT(ratio, 0.85) << run.name;
    EXPECT_LT(ratio, 1.15) << run.name;
    RecordProperty(run.name, std::to_string(ratio));
    std::printf("%-28s published %.3f, forecast %.3f tokens/s, ratio %.2f\n", run.name, run.tok_s,
                1.0 / pass.seconds, ratio);
  }
}

// 9.2 s + 2.0 s a row on a 64 GB M1 Max: int8 spine of 54.3 GB, nothing resident, 7.15 GB/s.
TEST(Forecast, ComesWithinFifteenPercentOfAPublishedLineOfPassTimes) {
  const ModelWork work = k3(54.3e9, 0, 0);
  for (int64_t n_rows = 1; n_rows <= 16; n_rows *= 2) {
    const PassForecast pass =
        forecast_pass(work, unit_machine(7.15e9),
                      {.n_rows = n_rows, .distinct_experts = distinct_experts_of_text(work, n_rows)});
    const double published = 9.2 + 2.0 * static_cast<double>(n_rows);
    EXPECT_NEAR(pass.seconds / published, 1.0, 0.15) << n_rows << " rows";
    EXPECT_EQ(pass.binds(), "the drive");
  }
}

TEST(Forecast, HalvesWithTwoDrivesWhereReadsBind) {
  const ModelWork work = k3(54.3e9, 0.1, 0.1);
  const double one = one_token(work, unit_machine(3.5e9), 0).seconds;
  const double two = one_token(work, unit_machine(7e9), 0).seconds;
  EXPECT_NEAR(one / two, 2.0, 1e-9);
}

TEST(Forecast, NamesWhatBinds) {
  EXPECT_EQ(one_token(k3(54.3e9, 0.3, 0.3), unit_machine(7e9), 0).binds(), "the drive");
  EXPECT_EQ(one_token(k3(0, 0.3, 0.3), unit_machine(7e9), 1).binds(), "arithmetic");
  EXPECT_EQ(one_token(k3(0, 2.0, 0.3), unit_machine(7e9), 0.2).binds(),
            "reads that wait for arithmetic");
}

TEST(Forecast, IsNeverBelowTheDriveNorTheArithmeticAlone) {
  for (double spine = 0; spine < 1.2e11; spine += 3e10) {
    for (double hit = 0; hit <= 1; hit += 0.25) {
      const PassForecast pass = one_token(k3(spine, 0.5, 0.8), unit_machine(5e9), hit);
      EXPECT_GE(pass.seconds, pass.drive_s);
      EXPECT_GE(pass.seconds * 1.000001, pass.compute_s);
    }
  }
}

TEST(Forecast, APromptOfTwiceAPassCostsTwoSweeps) {
  ModelWork work = k3(54.3e9, 0, 0);
  const Machine machine = unit_machine(7e9);
  EXPECT_NEAR(forecast_prompt(work, machine, 1024) / forecast_prompt(work, machine, 512), 2.0, 1e-9);
  work.rows_max = 1024;
  EXPECT_LT(forecast_prompt(work, machine, 1024) / forecast_prompt(work, machine, 512), 1.3);
}

TEST(Forecast, IndependentTextsWantMoreExpertsThanOne) {
  const ModelWork work = k3(0, 0, 0);
  EXPECT_NEAR(distinct_experts_of_text(work, 1), 16, 1e-9);
  EXPECT_NEAR(distinct_experts_of_texts(work, 1), 16, 1e-9);
  for (int64_t n = 2; n <= 2048; n *= 2) {
    EXPECT_LE(distinct_experts_of_text(work, n), distinct_experts_of_texts(work, n));
    EXPECT_GT(distinct_experts_of_text(work, n), distinct_experts_of_text(work, n / 2));
    EXPECT_LE(distinct_experts_of_texts(work, n), 896);
  }
}

}  // namespace
}  // namespace sluice
