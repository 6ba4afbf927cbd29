// From a row of logits to a token (contracts 2), the same on every machine.
// One owner. Invariant: the token at a position is a function of the logits, the parameters, the
// tokens before it, the position and the choice; how they came about does not matter.
//
// The definition, operation by operation, all in double (exp and log as in engine/real64.h):
//   1. z[i] = logit[i], then z[i] + bias for each id of logit_bias, in the order given.
//   2. For every id in the prompt or the reply: z[i] / repetition_penalty if z[i] > 0, else times
//   it.
//   3. For every id in the reply, n times: z[i] - (presence_penalty + frequency_penalty * n).
//   4. temperature 0: the largest z, ties to the lower id; nothing below applies.
//      Otherwise w[i] = exp((z[i] - max z) / temperature), candidates ordered by falling z, ties by
//      rising id.
//   5. top-k keeps the first k candidates.
//   6. top-p keeps the shortest beginning of the order whose running sum of w reaches top_p * (sum
//   of
//      the candidates' w in rising id); the candidate that reaches it is kept.
//   7. min-p keeps the candidates with w >= min_p (the largest w is 1).
//   8. Draw: with total = sum of the kept w in rising id, the first kept id whose running sum in
//      rising id is above u * total, u = philox_uniform(seed, position, choice); the last id with
//      w > 0 should rounding leave none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

namespace sluice {

struct LogitBias {
  TokenId id = 0;
  double bias = 0.0;
};

// The defaults are greedy and change nothing.
struct SamplingParams {
  double temperature = 0.0;         // 0: greedy
  int64_t top_k = 0;                // 0: all
  double top_p = 1.0;               // (0, 1]
  double min_p = 0.0;               // [0, 1]
  double repetition_penalty = 1.0;  // > 0
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  std::vector<LogitBias> logit_bias = {};
  uint64_t seed = 0;
};

// kInvalid names the parameter that is out of its range.
Status validate(const SamplingParams& params, int64_t vocab_size);

// The largest logit, ties to the lower id.
TokenId argmax(std::span<const float> logits);

// ln of the softmax of the raw logits at `id`: (l - max) - ln(sum of exp(l_i - max) in rising id).
double raw_logprob(std::span<const float> logits, TokenId id);

class Sampler {
 public:
  // `params` were validated. `choice` tells apart the replies to one request.
  Sampler(SamplingParams params, int64_t vocab_size, uint64_t choice);

  // The penalties' memory: prompt tokens first, then each token of the reply as it is emitted.
  void add_prompt(std::span<const TokenId> tokens);
  void add_reply(TokenId token);

  // The token at `position` of the sequence. kCorrupt when a logit is not finite.
  Result<TokenId> draw(std::span<const float> logits, uint64_t position);

 private:
  struct Candidate {
    double z;
    double weight;
    TokenId id;
  };
  // The order of step 4.
  static bool before(const Candidate& a, const Candidate& b) {
    return a.z > b.z || (a.z == b.z && a.id < b.id);
  }
  void penalise();
  void keep_top_k();
  void keep_top_p();
  double total_weight() const;
  TokenId pick(double u) const;

  SamplingParams params_;
  uint64_t choice_;
  std::vector<double> z_;              // [vocab]
  std::vector<Candidate> candidates_;  // in rising id between steps
  std::vector<bool> seen_;             // [vocab], in the prompt or the reply
  std::vector<int64_t> in_reply_;      // [vocab], how often
};

}  // namespace sluice
