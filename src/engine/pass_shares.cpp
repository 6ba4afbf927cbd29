#include "engine/pass_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

class Sharing {
 public:
  Sharing(std::span<const RowDemand> demands, const RowLimits& limits)
      : demands_(demands), shares_(demands.size()) {
    const auto n = static_cast<int64_t>(demands.size());
    CHECK(limits.rows_max >= n && limits.logit_rows_max >= n);
    int64_t n_decoding = 0;
    for (size_t i = 0; i < demands.size(); ++i) {
      if (!demands[i].decoding) continue;
      shares_[i] = 1;
      ++n_decoding;
    }
    rows_left_ = limits.rows_max - n_decoding;
    if (n_decoding > 0) rows_left_ = std::min(rows_left_, limits.rows_with_decoding);
    // Each sequence may want the logits of one row.
    logit_rows_left_ = limits.logit_rows_max - n;
  }

  std::vector<int64_t> share_prompts() {
    std::vector<size_t> prompts;
    for (size_t i = 0; i < demands_.size(); ++i) {
      if (!demands_[i].decoding) prompts.push_back(i);
    }
    if (prompts.empty()) return std::move(shares_);
    give(prompts.front(), (rows_left_ + 1) / 2);
    std::ranges::sort(prompts, {}, [this](size_t i) { return std::pair(demands_[i].rows, i); });
    for (const size_t i : prompts) give(i, rows_left_);
    return std::move(shares_);
  }

 private:
  void give(size_t i, int64_t rows_max) {
    int64_t rows = std::min({demands_[i].rows - shares_[i], rows_max, rows_left_});
    if (demands_[i].all_logits) {
      // One of its rows is counted already.
      const int64_t counted = shares_[i] == 0 ? 1 : 0;
      rows = std::min(rows, logit_rows_left_ + counted);
      if (rows > 0) logit_rows_left_ -= rows - counted;
    }
    rows_left_ -= rows;
    shares_[i] += rows;
  }

  std::span<const RowDemand> demands_;
  std::vector<int64_t> shares_;
  int64_t rows_left_ = 0;
  int64_t logit_rows_left_ = 0;
};

}  // namespace

std::vector<int64_t> share_rows(std::span<const RowDemand> demands, const RowLimits& limits) {
  return Sharing(demands, limits).share_prompts();
}

}  // namespace sluice
