#include "model/state.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

int64_t pages_of(int64_t positions) { return (positions + kPagePositions - 1) / kPagePositions; }

}  // namespace

KdaShape::KdaShape(const Config& config)
    : n_heads(config.kda.n_heads),
      head_dim(config.kda.head_dim),
      window(config.kda.conv_size - 1) {
  for (const bool kda : config.layer_is_kda) n_layers += kda ? 1 : 0;
  if (n_layers == 0) n_heads = head_dim = window = 0;
}

State::State(const Config& config, PagePool& pages, int64_t log_rows_max)
    : kda_(config),
      pages_(&pages),
      log_rows_max_(log_rows_max),
      committed_(kda_.n_layers * kda_.layer_floats()),
      spare_(kda_.n_layers * kda_.layer_floats()),
      log_(kda_.n_layers * log_rows_max * kda_.log_row_floats()) {
  page_table_.reserve(static_cast<size_t>(pages.positions_max() / kPagePositions));
}

State::~State() { reset(); }

void State::reset() {
  for (const int32_t page : page_table_) pages_->give_back(page);
  page_table_.clear();
  std::ranges::fill(committed_.span(), 0.0f);
  length_ = n_tentative_ = 0;
  drop_mark();
}

void State::mark() {
  CHECK(n_tentative_ == 0);
  std::ranges::copy(committed_.span(), spare_.data());
  mark_length_ = length_;
}

void State::return_to_mark() {
  CHECK(mark_length_ >= 0 && mark_length_ <= length_ && n_tentative_ == 0);
  std::ranges::copy(spare_.span(), committed_.data());
  length_ = mark_length_;
  const auto n_pages = static_cast<size_t>(pages_of(length_));
  while (page_table_.size() > n_pages) {
    pages_->give_back(page_table_.back());
    page_table_.pop_back();
  }
}

std::span<float> State::page_floats(int64_t index) const {
  const int32_t page = page_table_[static_cast<size_t>(index)];
  return {pages_->rows(page, 0), static_cast<size_t>(pages_->shape().floats())};
}

Status State::begin_restore(int64_t length) {
  reset();
  return reserve(length);
}

Status State::reserve(int64_t n_rows) {
  const auto pages_needed = static_cast<size_t>(pages_of(length_ + n_rows));
  const size_t pages_before = page_table_.size();
  while (page_table_.size() < pages_needed) {
    Result<int32_t> page = pages_->take();
    if (!page.ok()) {
      while (page_table_.size() > pages_before) {
        pages_->give_back(page_table_.back());
        page_table_.pop_back();
      }
      return page.error();
    }
    page_table_.push_back(page.value());
  }
  return Ok{};
}

void State::finish_keep(int64_t n_rows) {
  std::swap(committed_, spare_);
  length_ += n_rows;
  n_tentative_ = 0;
  drop_mark();
}

void State::finish_tentative(int64_t n_rows) { n_tentative_ = n_rows; }

void State::commit(int64_t n_rows, const Compute& compute) {
  CHECK(n_rows >= 0 && n_rows <= n_tentative_);
  if (n_rows > 0) {
    const int64_t units = kda_.n_layers * kda_.n_heads;
    compute.pool->run([&](int worker, int workers) {
      const Slice mine = slice(units, worker, workers);
      for (int64_t unit = mine.begin; unit < mine.end; ++unit) {
        replay_head(unit / kda_.n_heads, unit % kda_.n_heads, n_rows, *compute.k);
      }
    });
    for (int64_t layer = 0; layer < kda_.n_layers; ++layer) shift_windows(layer, n_rows);
  }
  length_ += n_rows;
  n_tentative_ = 0;
}

void State::replay_head(int64_t kda_layer, int64_t head, int64_t n_rows, const KernelTable& k) {
  const int64_t d = kda_.head_dim;
  float* recurrent = committed(kda_layer).recurrent + head * d * d;
  for (int64_t row = 0; row < n_rows; ++row) {
    const KdaLogRow log = log_row(kda_layer, row);
    k.kda_step(recurrent, {.decay = log.decay + head * d,
                           .k = log.k + head * d,
                           .v = log.v + head * d,
                           .q = nullptr,
                           .o = nullptr,
                           .beta = log.beta[head],
                           .key_dim = d,
                           .value_dim = d});
  }
}

void State::shift_windows(int64_t kda_layer, int64_t n_rows) {
  const KdaMemory memory = committed(kda_layer);
  for (size_t i = 0; i < 3; ++i) {
    shift_window(memory.windows[i], kda_.window, kda_.channels(), n_rows,
                 [&](int64_t row) { return std::as_const(log_row(kda_layer, row).raw[i]); });
  }
}

KdaMemory State::memory(FloatBuffer& buffer, int64_t kda_layer) const {
  float* layer = buffer.data() + kda_layer * kda_.layer_floats();
  float* windows = layer + kda_.recurrent_floats();
  const int64_t stride = kda_.window * kda_.channels();
  return {layer, {windows, windows + stride, windows + 2 * stride}};
}

KdaLogRow State::log_row(int64_t kda_layer, int64_t row) {
  DCHECK(row < log_rows_max_);
  const int64_t c = kda_.channels();
  float* at = log_.data() + (kda_layer * log_rows_max_ + row) * kda_.log_row_floats();
  return {{at, at + c, at + 2 * c}, at + 3 * c, at + 4 * c, at + 5 * c, at + 6 * c};
}

float* State::latent(int64_t mla_layer, int64_t position) const {
  const int32_t page = page_table_[static_cast<size_t>(position / kPagePositions)];
  return pages_->rows(page, mla_layer) +
         position % kPagePositions * pages_->shape().latent_dim;
}

uint64_t state_bytes(const Config& config, int64_t log_rows_max) {
  const KdaShape kda(config);
  const int64_t floats =
      kda.n_layers * (2 * kda.layer_floats() + log_rows_max * kda.log_row_floats());
  return static_cast<uint64_t>(floats) * sizeof(float);
}

uint64_t page_bytes(const Config& config, int64_t positions) {
  return static_cast<uint64_t>(pages_of(positions) * PageShape(config).floats()) * sizeof(float);
}

}  // namespace sluice
