#include "engine/forecast.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "store/expert_store.h"
#include "store/spine_store.h"

namespace sluice {
namespace {

struct Point {
  double x, y;
};

// Piecewise linear through `points` of rising x; constant outside.
double interpolate(std::span<const Point> points, double x) {
  if (x <= points.front().x) return points.front().y;
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    if (x <= b.x) return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }
  return points.back().y;
}

size_t index(WeightFormat format) { return static_cast<size_t>(format); }

void add_matrix(WeightWork& work, WeightFormat format, int64_t rows, int64_t cols, uint64_t bytes) {
  work.params[index(format)] += static_cast<double>(rows) * static_cast<double>(cols);
  work.bytes[index(format)] += static_cast<double>(bytes);
}

// What the layer's experts do not wait for.
bool is_after_routing(Role role) {
  switch (role) {
    case Role::kMlpGateProj:
    case Role::kMlpUpProj:
    case Role::kMlpDownProj:
    case Role::kSharedGateProj:
    case Role::kSharedUpProj:
    case Role::kSharedDownProj:
    case Role::kRoutedExpertUpProj:
      return true;
    default:
      return false;
  }
}

LayerWork layer_work(const Checkpoint& checkpoint, LayerId layer, const PackFile* pack) {
  LayerWork work;
  work.moe = checkpoint.config().is_moe(layer);
  for (size_t r = 0; r < kRoles; ++r) {
    const auto role = static_cast<Role>(r);
    const TensorRef& tensor = checkpoint.tensor(layer, role);
    if (!tensor.present() || tensor.kind != TensorKind::kMatrix) continue;
    const PackTensor* packed = pack ? pack->tensor(layer, role) : nullptr;
    const bool int8 = packed != nullptr && packed->has_scales();
    add_matrix(is_after_routing(role) ? work.after : work.before,
               int8 ? WeightFormat::kInt8 : WeightFormat::kBf16, tensor.rows, tensor.cols,
               packed ? packed->bytes : tensor.bytes);
  }
  return work;
}

WeightWork expert_work(const Checkpoint& checkpoint) {
  WeightWork work;
  const Config& config = checkpoint.config();
  if (checkpoint.n_experts_total() == 0) return work;
  const ExpertLayout& layout = checkpoint.expert_layout();
  add_matrix(work,
             layout.format == ExpertFormat::kMxfp4 ? WeightFormat::kMxfp4 : WeightFormat::kBf16,
             3 * config.moe.intermediate_size, config.expert_width(), layout.record_bytes);
  return work;
}

WeightWork head_work(const Checkpoint& checkpoint, const PackFile* pack) {
  WeightWork work;
  const TensorRef& head = checkpoint.global(
      checkpoint.global(Role::kLmHead).present() ? Role::kLmHead : Role::kEmbedTokens);
  const bool int8 = pack != nullptr && pack->layout().head().has_scales();
  add_matrix(work, int8 ? WeightFormat::kInt8 : WeightFormat::kBf16, head.rows, head.cols,
             int8 ? pack->layout().head().bytes : head.bytes);
  return work;
}

// Seconds of `n_rows` rows through `work`: the weights come from memory once, the products are at
// most as fast as those of many rows.
double seconds(const WeightWork& work, const ComputeRates& rates, double n_rows) {
  double total = 0;
  for (size_t f = 0; f < kWeightFormats; ++f) {
    total += std::max(work.bytes[f] / rates.row_bytes_s[f],
                      2.0 * work.params[f] * n_rows / rates.flops_s[f]);
  }
  return total;
}

}  // namespace

ModelWork model_work(const Checkpoint& checkpoint, const MemoryPlan& plan, const PackFile* pack) {
  const Config& config = checkpoint.config();
  ModelWork work;
  int64_t n_mla = 0;
  for (LayerId layer{0}; layer.v < config.n_layers; ++layer.v) {
    work.layers.push_back(layer_work(checkpoint, layer, pack));
    if (!plan.layer_pinned[static_cast<size_t>(layer.v)]) {
      work.layers.back().streamed_bytes =
          static_cast<double>(spine_slot_bytes(checkpoint, layer, pack));
    }
    if (config.is_kda(layer)) {
      const double head_bytes = 4.0 * static_cast<double>(config.kda.head_dim * config.kda.head_dim);
      work.kda_state_bytes += head_bytes * static_cast<double>(config.kda.n_heads);
    } else {
      ++n_mla;
    }
  }
  const double latent = static_cast<double>(config.mla.kv_lora_rank + config.mla.latent_dim());
  work.attend_flops_per_position =
      2.0 * latent * static_cast<double>(config.mla.n_heads * n_mla);
  work.head = head_work(checkpoint, pack);
  work.expert = expert_work(checkpoint);
  work.expert_read_bytes = static_cast<double>(expert_slot_bytes(checkpoint));
  work.n_experts = config.moe.n_experts;
  work.n_experts_per_token = config.moe.n_experts_per_token;
  if (checkpoint.n_experts_total() > 0) {
    work.experts_resident = static_cast<double>(plan.expert_slots) /
                            static_cast<double>(checkpoint.n_experts_total());
  }
  work.rows_max = plan.rows_max;
  return work;
}

PassForecast forecast_pass(const ModelWork& work, const Machine& machine, const PassShape& shape) {
  const ComputeRates& rates = machine.rates;
  const auto n_rows = static_cast<double>(shape.n_rows);
  const double distinct = shape.distinct_experts;
  const double missed_bytes = distinct * (1.0 - shape.hit) * work.expert_read_bytes;
  // Rows are spread over the distinct experts; each expert's weights come from memory once.
  const double rows_per_expert =
      distinct > 0 ? n_rows * static_cast<double>(work.n_experts_per_token) / distinct : 0;
  const double experts_s = distinct * seconds(work.expert, rates, rows_per_expert);
  const auto n_layers = static_cast<double>(work.layers.size());
  const double mixing_s =
      (static_cast<double>(shape.n_rows) * work.kda_state_bytes / rates.state_bytes_s +
       n_rows * static_cast<double>(shape.position) * work.attend_flops_per_position /
           rates.attend_flops_s) /
      n_layers;

  PassForecast forecast;
  double serial_s = 0;
  for (const LayerWork& layer : work.layers) {
    const double before_s = seconds(layer.before, rates, n_rows) + mixing_s;
    double after_s = seconds(layer.after, rates, n_rows);
    double read_bytes = 0;
    if (layer.moe) {
      after_s += experts_s;
      read_bytes = missed_bytes;
    }
    // The last missed expert is computed after its read.
    const double last_s = layer.moe && read_bytes > 0 ? experts_s / distinct : 0;
    serial_s += before_s + std::max(read_bytes / machine.drive_bytes_s + last_s, after_s);
    forecast.compute_s += before_s + after_s;
    forecast.read_bytes += read_bytes + layer.streamed_bytes;
  }
  const double head_s = seconds(work.head, rates, static_cast<double>(shape.n_logits));
  forecast.compute_s += head_s;
  forecast.drive_s = forecast.read_bytes / machine.drive_bytes_s;
  forecast.seconds = std::max(forecast.drive_s, serial_s + head_s);
  return forecast;
}

std::string PassForecast::binds() const {
  constexpr double kNearly = 0.95;
  if (drive_s >= kNearly * seconds) return "the drive";
  if (compute_s >= kNearly * seconds) return "arithmetic";
  return "reads that wait for arithmetic";
}

double distinct_experts_of_texts(const ModelWork& work, int64_t n_texts) {
  if (work.n_experts == 0) return 0;
  const auto all = static_cast<double>(work.n_experts);
  const double chosen = static_cast<double>(work.n_experts_per_token) / all;
  return all * (1.0 - std::pow(1.0 - chosen, static_cast<double>(n_texts)));
}

double distinct_experts_of_text(const ModelWork& work, int64_t n_rows) {
  if (work.n_experts == 0) return 0;
  // log2(rows) -> multiples of one row's experts; the last two are assumed, not published.
  constexpr std::array<Point, 9> kPublished = {{{0, 1},
                                                {1, 1.71},
                                                {2, 3.05},
                                                {3, 5.17},
                                                {4, 7.76},
                                                {5, 11.4},
                                                {6, 19.7},
                                                {9, 47},
                                                {11, 56}}};
  const double multiple = interpolate(kPublished, std::log2(static_cast<double>(n_rows)));
  return std::min(multiple * static_cast<double>(work.n_experts_per_token),
                  distinct_experts_of_texts(work, n_rows));
}

double expected_hit(double resident) {
  constexpr std::array<Point, 7> kPublished = {
      {{0, 0}, {0.014, 0.206}, {0.048, 0.313}, {0.076, 0.44}, {0.095, 0.545}, {0.56, 0.996}, {1, 1}}};
  return interpolate(kPublished, resident);
}

double forecast_prompt(const ModelWork& work, const Machine& machine, int64_t n_tokens) {
  double total_s = 0;
  for (int64_t done = 0; done < n_tokens;) {
    const int64_t n_rows = std::min(n_tokens - done, work.rows_max);
    PassShape shape{.n_rows = n_rows, .position = done + n_rows / 2};
    shape.distinct_experts = distinct_experts_of_text(work, n_rows);
    // A sweep through all experts evicts what the next one wants, unless all of them fit.
    shape.hit = work.experts_resident >= 1.0 ? 1.0 : 0.0;
    total_s += forecast_pass(work, machine, shape).seconds;
    done += n_rows;
  }
  return total_s;
}

}  // namespace sluice
