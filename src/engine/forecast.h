// What a pass will cost on a given machine, and what binds: the drive, the arithmetic, or reads that
// must wait for arithmetic. Pure functions over sizes and rates; thread-safe.
//
// The model of one pass: the drive delivers the streamed spine and the missed experts, never idle;
// layer by layer the attention and the router are computed, then the layer's missed experts are read
// while shared experts and present experts are computed. The pass takes the longer of the two.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/compute_rates.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "store/memory_plan.h"

namespace sluice {

// Weights of one kind of work: bytes as stored and parameters, by WeightFormat.
struct WeightWork {
  std::array<double, kWeightFormats> bytes{};
  std::array<double, kWeightFormats> params{};
};

struct LayerWork {
  WeightWork before;  // attention, router and latent: the experts are known only after it
  WeightWork after;   // shared experts, latent back, dense MLP
  double streamed_bytes = 0;  // aligned; 0 for a pinned layer
  bool moe = false;
};

// All a forecast needs of a checkpoint, a spine format and a memory plan.
struct ModelWork {
  std::vector<LayerWork> layers;
  WeightWork head;
  WeightWork expert;  // one routed expert
  double expert_read_bytes = 0;  // of one, aligned
  int64_t n_experts = 0;            // of one layer
  int64_t n_experts_per_token = 0;  // of one layer
  double experts_resident = 0;      // share of all routed experts that fits in memory
  double kda_state_bytes = 0;       // of one sequence
  double attend_flops_per_position = 0;  // of one row, all MLA layers
  int64_t rows_max = 0;             // of one pass
};

// `pack` as in ModelOptions.
ModelWork model_work(const Checkpoint& checkpoint, const MemoryPlan& plan, const PackFile* pack);

struct Machine {
  ComputeRates rates;
  double drive_bytes_s = 0;  // of all drives together
};

// One kind of pass.
struct PassShape {
  int64_t n_rows = 1;
  int64_t n_sequences = 1;
  int64_t n_logits = 1;
  int64_t position = 0;         // where the rows stand: what attention walks
  double distinct_experts = 0;  // of one layer
  double hit = 0;               // share of them found in memory
};

struct PassForecast {
  double seconds = 0;
  double drive_s = 0;    // reading alone
  double compute_s = 0;  // arithmetic alone
  double read_bytes = 0;
  // "the drive", "arithmetic", or "reads that wait for arithmetic".
  std::string binds() const;
};
PassForecast forecast_pass(const ModelWork& work, const Machine& machine, const PassShape& shape);

// Distinct experts of one layer that `n_rows` rows of one text choose. Published for K3 up to 64 rows
// (docs/PERFORMANCE.md), beyond that approaching all of them. Independent texts choose more.
double distinct_experts_of_text(const ModelWork& work, int64_t n_rows);
double distinct_experts_of_texts(const ModelWork& work, int64_t n_texts);

// Share of a decode row's experts found in a cache that holds `resident` of all of them: published
// for K3 on ordinary text (docs/PERFORMANCE.md).
double expected_hit(double resident);

// Seconds to read a prompt in passes as large as the plan allows.
double forecast_prompt(const ModelWork& work, const Machine& machine, int64_t n_tokens);

}  // namespace sluice
