// Tokens to tokens: what the session does not know of the prompt in passes as large as the plan
// allows, then one row a token, drawn and committed. Knows nothing of text. One owner: the thread
// that owns model and session.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "model/model.h"

namespace sluice {

enum class FinishReason { kStop, kLength, kToolCalls, kCancelled, kError };

// The word of contracts 3: stop, length, tool_calls, cancelled, error.
const char* finish_reason_name(FinishReason reason);

struct TokenRequest {
  std::vector<TokenId> prompt = {};
  int64_t max_new = 0;
  SamplingParams sampling = {};
  uint64_t choice = 0;                 // which of several replies to one request
  std::vector<TokenId> stop_ids = {};  // the reply ends with the first of them, which is kept
};

// Times in seconds, counts of this request alone.
struct GenerateStats {
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt: known from an earlier request
  int64_t new_tokens = 0;
  double prefill_s = 0.0;  // passes over the prompt
  double ttft_s = 0.0;     // from the call to the first token
  double total_s = 0.0;
  double decode_tok_s = 0.0;  // tokens after the first per second; 0 when there are none
  uint64_t bytes_read = 0;    // aligned bytes asked of the drive
  uint64_t expert_hits = 0;
  uint64_t expert_misses = 0;
  int64_t draft_proposed = 0;  // a model without a drafter proposes none
  int64_t draft_accepted = 0;
  double read_gb_s() const {
    return total_s > 0 ? static_cast<double>(bytes_read) / 1e9 / total_s : 0.0;
  }
};

struct TokenReply {
  std::vector<TokenId> ids;  // what was made, whatever the finish
  FinishReason finish = FinishReason::kLength;
  std::optional<Error> error;  // set when finish is kError
  GenerateStats stats;
};

// Called with each token as it is drawn. Returns false to end the reply here (kStop).
using OnToken = std::function<bool(TokenId)>;

// Refuses (kInvalid, kBudget) what cannot be run before anything is computed: an empty prompt, a
// token outside the vocabulary, a prompt that leaves no room for a token in `context_positions`.
Status validate(const TokenRequest& request, const Config& config, int64_t context_positions);

// Runs a validated request on `session`, from as far as it knows the prompt. `cancel` may be null;
// it is read before every token and by the model in every layer. Whatever the finish, `session` can
// be used again.
TokenReply generate_tokens(Model& model, Session& session, int64_t context_positions,
                           const TokenRequest& request, const std::atomic<bool>* cancel,
                           const OnToken& on_token);

}  // namespace sluice
