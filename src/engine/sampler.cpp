#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/philox.h"
#include "engine/real64.h"

namespace sluice {
namespace {

bool in_range(double value, double low, double high) { return value >= low && value <= high; }

bool all_finite(std::span<const float> logits) {
  return std::all_of(logits.begin(), logits.end(), [](float l) { return std::isfinite(l); });
}

}  // namespace

Status validate(const SamplingParams& params, int64_t vocab_size) {
  const auto invalid = [](const char* what) { return Error{Code::kInvalid, what}; };
  // Beyond 1e6 a value only shows that the request is broken, and products could overflow.
  constexpr double kLimit = 1e6;
  if (!in_range(params.temperature, 0, kLimit)) return invalid("temperature must be 0 or above");
  if (params.top_k < 0) return invalid("top-k must be 0 (off) or above");
  if (!(params.top_p > 0) || params.top_p > 1) {
    return invalid("top-p must be above 0 and at most 1");
  }
  if (!in_range(params.min_p, 0, 1)) return invalid("min-p must lie between 0 and 1");
  if (!in_range(params.repetition_penalty, 1 / kLimit, kLimit)) {
    return invalid("the repetition penalty must be above 0");
  }
  if (!in_range(params.presence_penalty, -kLimit, kLimit)) {
    return invalid("the presence penalty must be a number between -1e6 and 1e6");
  }
  if (!in_range(params.frequency_penalty, -kLimit, kLimit)) {
    return invalid("the frequency penalty must be a number between -1e6 and 1e6");
  }
  for (const LogitBias& entry : params.logit_bias) {
    if (entry.id < 0 || entry.id >= vocab_size) {
      return Error{Code::kInvalid, "logit bias names token " + std::to_string(entry.id) +
                                       ", but ids run from 0 to " + std::to_string(vocab_size - 1)};
    }
    if (!in_range(entry.bias, -kLimit, kLimit)) {
      return invalid("a logit bias must be a number between -1e6 and 1e6");
    }
  }
  return Ok{};
}

TokenId argmax(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double raw_logprob(std::span<const float> logits, TokenId id) {
  const auto max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += exp_nonpositive(static_cast<double>(logit) - max);
  return (static_cast<double>(logits[static_cast<size_t>(id)]) - max) - log_at_least_one(sum);
}

Sampler::Sampler(SamplingParams params, int64_t vocab_size, uint64_t choice)
    : params_(std::move(params)),
      choice_(choice),
      z_(static_cast<size_t>(vocab_size)),
      seen_(static_cast<size_t>(vocab_size)),
      in_reply_(static_cast<size_t>(vocab_size)) {
  candidates_.reserve(static_cast<size_t>(vocab_size));
}

void Sampler::add_prompt(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) seen_[static_cast<size_t>(token)] = true;
}

void Sampler::add_reply(TokenId token) {
  seen_[static_cast<size_t>(token)] = true;
  ++in_reply_[static_cast<size_t>(token)];
}

Result<TokenId> Sampler::draw(std::span<const float> logits, uint64_t position) {
  CHECK(logits.size() == z_.size());
  if (!all_finite(logits)) {
    return Error{Code::kCorrupt, "the logits of position " + std::to_string(position) +
                                     " are not finite: a weight of the model is damaged; check "
                                     "its files against the published hashes"};
  }
  std::copy(logits.begin(), logits.end(), z_.begin());
  penalise();
  const auto best = std::max_element(z_.begin(), z_.end());
  if (params_.temperature == 0.0) return static_cast<TokenId>(best - z_.begin());

  candidates_.clear();
  for (size_t i = 0; i < z_.size(); ++i) {
    const double weight = exp_nonpositive((z_[i] - *best) / params_.temperature);
    candidates_.push_back({z_[i], weight, static_cast<TokenId>(i)});
  }
  keep_top_k();
  keep_top_p();
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < params_.min_p; });
  return pick(philox_uniform(params_.seed, position, choice_));
}

void Sampler::penalise() {
  for (const LogitBias& entry : params_.logit_bias) z_[static_cast<size_t>(entry.id)] += entry.bias;
  for (size_t i = 0; i < z_.size(); ++i) {
    if (!seen_[i]) continue;
    z_[i] = z_[i] > 0 ? z_[i] / params_.repetition_penalty : z_[i] * params_.repetition_penalty;
    if (in_reply_[i] == 0) continue;
    z_[i] -=
        params_.presence_penalty + params_.frequency_penalty * static_cast<double>(in_reply_[i]);
  }
}

void Sampler::keep_top_k() {
  const auto k = static_cast<size_t>(params_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + params_.top_k - 1, candidates_.end(),
                   before);
  candidates_.resize(k);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

// A heap hands out the order one by one: of 163,840 candidates mostly a handful is needed.
void Sampler::keep_top_p() {
  if (params_.top_p >= 1.0) return;
  const double wanted = params_.top_p * total_weight();
  const auto after = [](const Candidate& a, const Candidate& b) { return before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  auto heap_end = candidates_.end();
  for (double sum = 0.0; heap_end != candidates_.begin() && sum < wanted;) {
    std::pop_heap(candidates_.begin(), heap_end, after);
    --heap_end;
    sum += heap_end->weight;
  }
  candidates_.erase(candidates_.begin(), heap_end);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

double Sampler::total_weight() const {
  double total = 0.0;
  for (const Candidate& c : candidates_) total += c.weight;
  return total;
}

TokenId Sampler::pick(double u) const {
  const double target = u * total_weight();
  double sum = 0.0;
  TokenId last = candidates_.front().id;
  for (const Candidate& c : candidates_) {
    if (c.weight > 0) last = c.id;
    sum += c.weight;
    if (sum > target) return c.id;
  }
  return last;
}

}  // namespace sluice
