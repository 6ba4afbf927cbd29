// Published numbers of one model's forward pass, and the check of weights on disk against them
// (spec 4.10). The leading layers can be checked while later shards are still missing.
// Pure functions over files; thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/options.h"

namespace sluice {

struct LogitAnchor {
  TokenId id = -1;
  double logit = 0;
};

struct AnchorTable {
  // The model that was measured, for people, and the sizes by which it is recognised.
  std::string model;
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  int64_t n_experts = 0;

  std::vector<TokenId> ids;        // the prompt
  std::vector<double> prefix_max;  // [layers]: the largest |residual| of all rows after each layer
  // Of the prompt's last row, and the greedy token after `argmax`.
  TokenId argmax = -1;
  TokenId next = -1;
  double mean_logit = 0;
  std::vector<LogitAnchor> logits;
};

// The table of the released Kimi K3.
AnchorTable k3_anchors();

// Bounds: summation order moves the maxima of a right model by about 1e-5 of their value and its
// logits by about 1e-5; the table's own rounding is 5e-5 at most. A wrong tensor is off by far
// more.
constexpr double kPrefixTolerance = 1e-4;  // relative
constexpr double kLogitTolerance = 5e-4;   // absolute

struct AnchorLine {
  std::string name;
  double published = 0;
  double computed = 0;
  double difference = 0;  // relative for the maxima, absolute for all else
  double tolerance = 0;
  bool pass() const { return difference <= tolerance; }  // false for NaN
};

struct AnchorReport {
  int64_t n_layers = 0;             // that were computed
  int64_t n_layers_configured = 0;  // of the model; logits are compared when both are equal
  std::vector<AnchorLine> lines;
  bool pass() const;
};

// Computes at most `n_layers_max` leading layers (those whose shards are all there) of
// options.model over table.ids and compares. Always the bf16 spine. kUnsupported when the model is
// not the table's; else the errors of opening a checkpoint and of a pass. `stop` may be null.
Result<AnchorReport> check_anchors(const EngineOptions& options, int64_t n_layers_max,
                                   const AnchorTable& table, const std::atomic<bool>* stop);

}  // namespace sluice
