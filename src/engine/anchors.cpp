#include "engine/anchors.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "engine/plan.h"
#include "format/checkpoint.h"
#include "model/capture.h"
#include "model/model.h"
#include "model/pages.h"
#include "model/state.h"

namespace sluice {
namespace {

// A model and one empty sequence, opened for a short prompt. The members borrow from those above.
struct Opened {
  EnginePlan plan;
  std::unique_ptr<Model> model;
  std::unique_ptr<PagePool> pages;
  std::unique_ptr<State> state;
};

Status check_model(const Checkpoint& checkpoint, const AnchorTable& table) {
  const Config& config = checkpoint.config();
  const int64_t n_layers = checkpoint.n_layers_configured();
  const bool same = config.hidden_size == table.hidden_size &&
                    config.vocab_size == table.vocab_size &&
                    config.moe.n_experts == table.n_experts &&
                    n_layers == static_cast<int64_t>(table.prefix_max.size());
  if (same) return Ok{};
  return Error{Code::kUnsupported,
               checkpoint.directory().string() + " (hidden size " +
                   std::to_string(config.hidden_size) + ", " + std::to_string(n_layers) +
                   " layers, vocabulary of " + std::to_string(config.vocab_size) +
                   ") is another model than the one whose numbers are published: anchors exist "
                   "only for " +
                   table.model + "; name its snapshot directory"};
}

Result<Opened> open_model(const Checkpoint& checkpoint, EngineOptions options, int64_t positions) {
  options.spine = SpineChoice::kBf16;  // what the anchors were made with
  options.context_positions = positions;
  Opened opened;
  TRY(opened.plan, plan_engine(checkpoint, options));
  TRY(opened.model, Model::open(checkpoint, opened.plan.memory,
                                {.table = opened.plan.table,
                                 .threads = opened.plan.threads,
                                 .qkv_norm_eps = options.qkv_norm_eps}));
  const Config& config = checkpoint.config();
  opened.pages = std::make_unique<PagePool>(PageShape(config), positions);
  opened.state = std::make_unique<State>(config, *opened.pages, kTentativeRowsMax);
  return opened;
}

// Appends `tokens`; the logits of the last row, or none.
Result<std::vector<float>> pass(Opened& opened, std::vector<TokenId> tokens, bool want_logits,
                                Capture* capture, const std::atomic<bool>* stop) {
  const int64_t vocab = opened.model->config().vocab_size;
  const int64_t n_logits = want_logits ? 1 : 0;
  std::vector<float> logits(static_cast<size_t>(n_logits * vocab));
  Batch batch;
  batch.sequences.push_back({.state = opened.state.get(),
                             .tokens = std::move(tokens),
                             .fate = RowFate::kKeep,
                             .n_logits = n_logits});
  TRY_OK(opened.model->forward(batch, {logits.data(), n_logits, vocab}, stop, capture));
  return logits;
}

// Of equal logits the lowest id.
TokenId argmax_of(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

AnchorLine absolute_line(std::string name, double published, double computed, double tolerance) {
  return {std::move(name), published, computed, std::abs(computed - published), tolerance};
}

void add_prefix_lines(const AnchorTable& table, const Capture& capture, AnchorReport& report) {
  const CapturedTensor& hidden = capture.tensors().at("hidden");  // [layers, rows, hidden]
  const size_t layer_floats = hidden.floats.size() / static_cast<size_t>(report.n_layers);
  for (size_t layer = 0; layer < static_cast<size_t>(report.n_layers); ++layer) {
    double largest = 0;
    for (const float x : std::span(hidden.floats).subspan(layer * layer_floats, layer_floats)) {
      if (!(std::abs(double{x}) <= largest)) largest = std::abs(double{x});  // NaN stays
    }
    const double published = table.prefix_max[layer];
    report.lines.push_back({"layer " + std::to_string(layer) + " max|prefix|", published, largest,
                            std::abs(largest - published) / published, kPrefixTolerance});
  }
}

void add_logit_lines(const AnchorTable& table, const std::vector<float>& logits,
                     AnchorReport& report) {
  report.lines.push_back(absolute_line("argmax", table.argmax, argmax_of(logits), 0));
  const double mean =
      std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
  report.lines.push_back(
      absolute_line("mean of all logits", table.mean_logit, mean, kLogitTolerance));
  for (const LogitAnchor& anchor : table.logits) {
    report.lines.push_back(absolute_line("logit of " + std::to_string(anchor.id), anchor.logit,
                                         logits[static_cast<size_t>(anchor.id)], kLogitTolerance));
  }
}

}  // namespace

bool AnchorReport::pass() const { return std::ranges::all_of(lines, &AnchorLine::pass); }

Result<AnchorReport> check_anchors(const EngineOptions& options, int64_t n_layers_max,
                                   const AnchorTable& table, const std::atomic<bool>* stop) {
  TRY(const Checkpoint checkpoint,
      Checkpoint::open(options.model, options.direct, {.leading_layers = n_layers_max, .open_file = options.open_file}));
  TRY_OK(check_model(checkpoint, table));
  const auto n_positions = static_cast<int64_t>(table.ids.size()) + 1;  // one more for `next`
  TRY(Opened opened, open_model(checkpoint, options, n_positions));

  AnchorReport report;
  report.n_layers = checkpoint.config().n_layers;
  report.n_layers_configured = checkpoint.n_layers_configured();
  const bool whole = report.n_layers == report.n_layers_configured;
  Capture capture;
  TRY(const std::vector<float> logits, pass(opened, table.ids, whole, &capture, stop));
  add_prefix_lines(table, capture, report);
  if (!whole) return report;
  add_logit_lines(table, logits, report);
  TRY(const std::vector<float> after, pass(opened, {table.argmax}, true, nullptr, stop));
  report.lines.push_back(absolute_line("argmax after " + std::to_string(table.argmax), table.next,
                                       argmax_of(after), 0));
  return report;
}

}  // namespace sluice
