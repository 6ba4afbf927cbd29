#include "engine/token_logprobs.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/sampler.h"

namespace sluice {

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, int64_t n_top) {
  TokenLogprobs out{.token = {id, raw_logprob(logits, id)}, .top = {}};
  if (n_top <= 0) return out;
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  const auto n = std::min(static_cast<size_t>(n_top), order.size());
  const auto end = order.begin() + static_cast<int64_t>(n);
  const auto at = [&](TokenId token) { return logits[static_cast<size_t>(token)]; };
  std::partial_sort(order.begin(), end, order.end(), [&](TokenId a, TokenId b) {
    return at(a) > at(b) || (at(a) == at(b) && a < b);
  });
  // ln softmax differs between tokens by the difference of their logits.
  for (size_t i = 0; i < n; ++i) {
    const double logprob =
        out.token.logprob + (static_cast<double>(at(order[i])) - static_cast<double>(at(id)));
    out.top.push_back({order[i], order[i] == id ? out.token.logprob : logprob});
  }
  return out;
}

std::vector<TokenLogprobs> LogprobGate::push(TokenLogprobs entry, bool special,
                                             const TextDelta& delta) {
  const size_t offset = text_bytes_;
  text_bytes_ += delta.text_bytes;
  shown_bytes_ += delta.text.size();
  if (special && !raw_) {
    undecided_.clear();
  } else {
    undecided_.push_back({std::move(entry), offset});
    const bool other = !delta.reasoning.empty() || !delta.calls.empty();
    if (raw_ || delta.text_bytes > 0) {
      std::ranges::move(undecided_, std::back_inserter(held_));
      undecided_.clear();
    } else if (other) {
      undecided_.clear();
    }
  }
  return release(/*all=*/false);
}

std::vector<TokenLogprobs> LogprobGate::finish(const TextDelta& delta, bool stopped) {
  text_bytes_ += delta.text_bytes;
  shown_bytes_ += delta.text.size();
  if (delta.text_bytes > 0) std::ranges::move(undecided_, std::back_inserter(held_));
  undecided_.clear();
  std::vector<TokenLogprobs> out = release(/*all=*/!stopped);
  held_.clear();
  return out;
}

std::vector<TokenLogprobs> LogprobGate::release(bool all) {
  std::vector<TokenLogprobs> out;
  while (!held_.empty() && (all || held_.front().offset < shown_bytes_)) {
    out.push_back(std::move(held_.front().entry));
    held_.pop_front();
  }
  return out;
}

}  // namespace sluice
