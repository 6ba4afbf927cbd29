// The plan over all budgets: within the limit, evenly pinned, refused below the floor.
#include "store/memory_plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "base/size.h"
#include "store/expert_store.h"

namespace sluice {
namespace {

// Layers of three sizes, the largest first; experts and rows small enough to fill gaps.
PlanInput uneven_input() {
  PlanInput input;
  input.fixed = {{"head", 4'200'000}, {"states", 1'000'000}};
  for (int layer = 0; layer < 13; ++layer) {
    input.layer_bytes.push_back(layer == 0 ? 9'000'000 : layer % 4 == 3 ? 3'000'000 : 5'000'000);
  }
  input.expert_slot_bytes = 700'000;
  input.n_experts_total = 60;
  input.row_bytes = 30'000;
  input.rows_min = 16;
  input.rows_wanted = 500;
  return input;
}

uint64_t floor_of(PlanInput input) {
  input.ram_bytes = std::numeric_limits<uint64_t>::max();
  auto plan = make_memory_plan(input);
  EXPECT_TRUE(plan.ok());
  return plan.value().floor_bytes;
}

// All that the input could use.
uint64_t everything(const PlanInput& input) {
  uint64_t bytes = static_cast<uint64_t>(input.n_experts_total) * input.expert_slot_bytes +
                   static_cast<uint64_t>(input.rows_wanted) * input.row_bytes;
  for (const Claim& claim : input.fixed) bytes += claim.bytes;
  for (const uint64_t layer : input.layer_bytes) bytes += layer;
  return bytes;
}

MemoryPlan plan_at(PlanInput input, uint64_t ram_bytes) {
  input.ram_bytes = ram_bytes;
  auto plan = make_memory_plan(input);
  EXPECT_TRUE(plan.ok()) << plan.error().what;
  return plan.value();
}

// The parts as the stores will take them, counted without the plan's own claims.
uint64_t taken_bytes(const PlanInput& input, const MemoryPlan& plan) {
  uint64_t bytes = static_cast<uint64_t>(plan.ring_slots) * plan.ring_slot_bytes +
                   static_cast<uint64_t>(plan.expert_slots) * input.expert_slot_bytes +
                   static_cast<uint64_t>(plan.rows_max) * input.row_bytes;
  for (const Claim& claim : input.fixed) bytes += claim.bytes;
  for (size_t layer = 0; layer < input.layer_bytes.size(); ++layer) {
    if (plan.layer_pinned[layer]) bytes += input.layer_bytes[layer];
  }
  return bytes;
}

void expect_sound(const PlanInput& input, const MemoryPlan& plan) {
  EXPECT_LE(plan.total_bytes(), plan.ram_bytes);
  EXPECT_EQ(plan.total_bytes(), taken_bytes(input, plan));
  EXPECT_LE(plan.floor_bytes, plan.ram_bytes);
  ASSERT_EQ(plan.layer_pinned.size(), input.layer_bytes.size());
  uint64_t largest_streamed = 0;
  std::vector<size_t> pins;
  for (size_t layer = 0; layer < input.layer_bytes.size(); ++layer) {
    if (plan.layer_pinned[layer]) {
      pins.push_back(layer);
    } else {
      largest_streamed = std::max(largest_streamed, input.layer_bytes[layer]);
    }
  }
  EXPECT_EQ(plan.ring_slot_bytes, largest_streamed);
  EXPECT_EQ(plan.ring_slots, largest_streamed > 0 ? 1 : 0);
  EXPECT_EQ(plan.n_pinned(), static_cast<int64_t>(pins.size()));
  // Evenly spread: the distances between neighbours, around the end too, differ by at most one.
  size_t least = input.layer_bytes.size(), most = 0;
  for (size_t i = 0; i < pins.size(); ++i) {
    const size_t next = i + 1 < pins.size() ? pins[i + 1] : pins[0] + input.layer_bytes.size();
    least = std::min(least, next - pins[i]);
    most = std::max(most, next - pins[i]);
  }
  EXPECT_TRUE(pins.empty() || most - least <= 1) << least << " to " << most;
  EXPECT_GE(plan.rows_max, input.rows_min);
  EXPECT_LE(plan.rows_max, std::max(input.rows_min, input.rows_wanted));
  EXPECT_GE(plan.expert_slots, input.expert_slot_bytes > 0 ? ExpertStore::kSlotsMin : 0);
}

TEST(MemoryPlan, TheFloorIsTheLeastOfEveryPart) {
  const PlanInput input = uneven_input();
  EXPECT_EQ(floor_of(input), 4'200'000u + 1'000'000 + 9'000'000 + 2 * 700'000 + 16 * 30'000);
  const MemoryPlan plan = plan_at(input, floor_of(input));
  expect_sound(input, plan);
  EXPECT_EQ(plan.total_bytes(), floor_of(input));
  EXPECT_EQ(plan.n_pinned(), 0);
  EXPECT_EQ(plan.expert_slots, 2);
  EXPECT_EQ(plan.rows_max, 16);
}

TEST(MemoryPlan, OneByteBelowTheFloorIsRefusedWithACureThatWorks) {
  PlanInput input = uneven_input();
  const uint64_t floor_bytes = floor_of(input);
  input.ram_bytes = floor_bytes - 1;
  const auto refused = make_memory_plan(input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_EQ(refused.error().what,
            "--ram 16.1 MB is below the floor of 16.1 MB (head 4.20 MB, states 1.00 MB, one layer "
            "9.00 MB, 2 experts 1.40 MB, 16 rows 480 kB); raise --ram to at least 16080000");
  const std::string cure = refused.error().what.substr(refused.error().what.rfind(' ') + 1);
  const auto parsed = parse_size(cure);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value(), floor_bytes);
  plan_at(input, parsed.value());
}

TEST(MemoryPlan, EveryBudgetUpToEverythingIsKeptAndNeverPinsLessWhenItGrows) {
  const PlanInput input = uneven_input();
  const uint64_t end = everything(input);
  int64_t pinned_before = 0;
  for (uint64_t ram = floor_of(input); ram <= end; ram += 10'007) {
    const MemoryPlan plan = plan_at(input, ram);
    expect_sound(input, plan);
    EXPECT_GE(plan.n_pinned(), pinned_before) << ram;
    pinned_before = plan.n_pinned();
    // What is left over is too small for one more of what comes last.
    if (plan.expert_slots < input.n_experts_total) {
      EXPECT_LT(ram - plan.total_bytes(), input.expert_slot_bytes);
    }
    if (plan.rows_max < input.rows_wanted) {
      EXPECT_LT(ram - plan.total_bytes(), input.row_bytes);
    }
  }
  const MemoryPlan plan = plan_at(input, end);
  EXPECT_EQ(plan.n_pinned(), 13);
  EXPECT_EQ(plan.ring_slots, 0);
  EXPECT_EQ(plan.expert_slots, 60);
  EXPECT_EQ(plan.rows_max, 500);
  EXPECT_EQ(plan.total_bytes(), end);
  EXPECT_EQ(plan_at(input, end * 10).total_bytes(), end);
}

TEST(MemoryPlan, EqualLayersPinAsManyAsFitBesideTheRing) {
  PlanInput input;
  input.layer_bytes.assign(10, 1000);
  for (uint64_t ram = 1000; ram < 10'000; ram += 100) {
    const MemoryPlan plan = plan_at(input, ram);
    expect_sound(input, plan);
    EXPECT_EQ(plan.n_pinned(), static_cast<int64_t>(ram / 1000 - 1)) << ram;
  }
  // The ring's memory takes the last layer: there is never just one that streams.
  EXPECT_EQ(plan_at(input, 9'999).n_pinned(), 8);
  EXPECT_EQ(plan_at(input, 10'000).n_pinned(), 10);
}

TEST(MemoryPlan, ASingleLayerIsPinnedAtTheFloor) {
  PlanInput input;
  input.layer_bytes = {5000};
  const MemoryPlan plan = plan_at(input, 5000);
  EXPECT_EQ(plan.floor_bytes, 5000u);
  EXPECT_EQ(plan.n_pinned(), 1);
  EXPECT_EQ(plan.ring_slots, 0);
}

TEST(MemoryPlan, PinsComeBeforeExpertsAndActivationsTakeASixteenthBeforeBoth) {
  const PlanInput input = uneven_input();
  const MemoryPlan plan = plan_at(input, 40'000'000);
  // The rest that is too small for an expert goes to rows.
  EXPECT_GE(plan.rows_max, 40'000'000 / 16 / 30'000);
  EXPECT_LE(plan.rows_max, 40'000'000 / 16 / 30'000 + 700'000 / 30'000);
  // 40 MB less 5.2 fixed, 2.5 of activations and 1.4 of experts are 30.9: five layers take 25 and
  // the ring 5, six would take 28.
  EXPECT_EQ(plan.layer_pinned, std::vector<bool>({1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0}));
  EXPECT_LT(plan.expert_slots, 2 + 5'000'000 / 700'000 + 1);
}

TEST(MemoryPlan, ADenseModelHasNoExpertSlots) {
  PlanInput input = uneven_input();
  input.expert_slot_bytes = 0;
  input.n_experts_total = 0;
  input.expert_cache_bytes = 1;
  const MemoryPlan plan = plan_at(input, floor_of(input));
  expect_sound(input, plan);
  EXPECT_EQ(plan.expert_slots, 0);
  EXPECT_EQ(plan.floor_bytes, 4'200'000u + 1'000'000 + 9'000'000 + 16 * 30'000);
}

TEST(MemoryPlan, ExpertCacheSetsTheSlotsWhateverTheMemory) {
  PlanInput input = uneven_input();
  input.expert_cache_bytes = 10 * 700'000 + 699'999;
  const uint64_t floor_bytes = floor_of(input);
  EXPECT_EQ(floor_bytes, floor_of(uneven_input()) + 8 * 700'000);
  for (uint64_t ram = floor_bytes; ram < 2 * everything(input); ram += 1'000'003) {
    const MemoryPlan plan = plan_at(input, ram);
    expect_sound(input, plan);
    EXPECT_EQ(plan.expert_slots, 10);
  }
  input.expert_cache_bytes = 1'000 * uint64_t{700'000};
  EXPECT_EQ(plan_at(input, everything(input) + 9'000'000).expert_slots, 60);
}

TEST(MemoryPlan, AnExpertCacheThatDoesNotFitIsRefused) {
  PlanInput input = uneven_input();
  input.expert_cache_bytes = 10 * 700'000;
  input.ram_bytes = floor_of(input) - 1;
  const auto wide = make_memory_plan(input);
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.error().code, Code::kBudget);
  EXPECT_NE(wide.error().what.find("10 experts 7.00 MB"), std::string::npos) << wide.error().what;
  EXPECT_NE(wide.error().what.find("at least 21680000 or lower --expert-cache"), std::string::npos)
      << wide.error().what;

  input.ram_bytes = everything(input);
  input.expert_cache_bytes = 2 * 700'000 - 1;
  const auto narrow = make_memory_plan(input);
  ASSERT_FALSE(narrow.ok());
  EXPECT_EQ(narrow.error().code, Code::kBudget);
  EXPECT_NE(narrow.error().what.find("raise --expert-cache to at least 1400000"), std::string::npos)
      << narrow.error().what;
  input.expert_cache_bytes = 1'400'000;
  EXPECT_EQ(plan_at(input, everything(input)).expert_slots, 2);
}

TEST(MemoryPlan, RandomModelsNeverBreakTheirBudget) {
  std::mt19937_64 random(7);
  const auto below = [&random](uint64_t end) { return random() % end; };
  for (int trial = 0; trial < 400; ++trial) {
    PlanInput input;
    input.fixed = {{"fixed", below(5'000'000)}};
    const uint64_t n_layers = 1 + below(40);
    for (uint64_t layer = 0; layer < n_layers; ++layer) {
      input.layer_bytes.push_back(kPageBytes * (1 + below(below(8) == 0 ? 3000 : 300)));
    }
    const bool dense = below(5) == 0;
    input.expert_slot_bytes = dense ? 0 : 1 + below(2'000'000);
    input.n_experts_total = dense ? 0 : static_cast<int64_t>(2 + below(200));
    input.row_bytes = 1 + below(300'000);
    input.rows_min = static_cast<int64_t>(1 + below(32));
    input.rows_wanted = static_cast<int64_t>(below(2'000));
    if (!dense && below(3) == 0) input.expert_cache_bytes = 4'000'000 + below(90'000'000);

    const uint64_t floor_bytes = floor_of(input);
    input.ram_bytes = floor_bytes - 1;
    EXPECT_FALSE(make_memory_plan(input).ok());
    int64_t pinned_before = 0;
    const uint64_t end = 2 * (floor_bytes + everything(input));
    for (int step = 0; step <= 50; ++step) {
      const uint64_t ram = floor_bytes + (end - floor_bytes) / 50 * static_cast<uint64_t>(step);
      const MemoryPlan plan = plan_at(input, ram);
      expect_sound(input, plan);
      EXPECT_GE(plan.n_pinned(), pinned_before);
      pinned_before = plan.n_pinned();
    }
    EXPECT_EQ(pinned_before, static_cast<int64_t>(n_layers));
  }
}

TEST(MemoryPlan, TheTextHasALineForEveryClaimAndTheTotal) {
  PlanInput input = uneven_input();
  const MemoryPlan plan = plan_at(input, 40'000'000);
  const std::string text = plan.text();
  for (const char* name : {"head ", "states ", "spine ring (1 slot) ", "activations (",
                           "pinned layers (", "experts (", "total ", " of 40.0 MB\n"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<std::ptrdiff_t>(plan.claims.size() + 1));
}

}  // namespace
}  // namespace sluice
