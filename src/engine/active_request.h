// One request of the scheduler between passes: its tokens so far, what they say, and what it wants
// of the next pass. One owner: the scheduler's thread, once it left the queue.
// Invariant: the reply depends on the request alone, however its rows were cut and whether it was
// put back into the queue in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/generate.h"
#include "engine/pass_shares.h"
#include "engine/reply_text.h"
#include "engine/request_stream.h"
#include "engine/sampler.h"
#include "engine/token_logprobs.h"
#include "kernels/linear.h"
#include "model/batch.h"
#include "model/state.h"
#include "text/tokenizer.h"

namespace sluice {

// What is asked of the scheduler.
struct ServeRequest {
  std::string id = {};       // names it in lists; the choices of one client's request share it
  size_t index = 0;          // among those of the id
  TokenRequest tokens = {};  // the checkpoint's own end token is a stop id without being listed
  // The text ends before the first of them; in a chat only the answer's content is searched.
  std::vector<std::string> stop_strings = {};
  ReplyForm form = ReplyForm::kRaw;
  std::optional<int64_t> logprobs = {};  // log probabilities of the text's tokens, and this many
                                         // alternatives
  bool prompt_logprobs = false;          // those of the prompt's tokens too
};

class ActiveRequest {
 public:
  using Clock = std::chrono::steady_clock;

  // `request` was validated; `tokenizer` outlives this object.
  ActiveRequest(ServeRequest request, std::shared_ptr<RequestStream> stream,
                const Tokenizer& tokenizer, int64_t context_positions, TokenId end_token);

  const std::string& id() const { return request_.id; }
  size_t index() const { return request_.index; }
  int64_t max_new() const { return request_.tokens.max_new; }
  const std::shared_ptr<RequestStream>& stream() const { return stream_; }
  Clock::time_point submitted() const { return submitted_; }
  int64_t n_tokens() const { return std::ssize(tokens_); }  // prompt and reply

  // Whether there is nothing to compute at all.
  bool needs_no_pass() const;
  // Between take_state and give_state it has a place in the passes. The state is empty.
  void take_state(State& state, int64_t vocab_size);
  State& give_state();
  State& state() { return *state_; }

  RowDemand demand() const;
  // The next `rows` rows and the logits that are wanted of them.
  void fill(int64_t rows, SequenceRows& out) const;
  // Takes in a pass over the rows that fill() gave. `logits` [n_logits, vocab].
  // An error is that of a draw; the request has not ended then.
  Status advance(const SequenceRows& rows, Rows logits, const Compute& compute);

  // Set by advance() when the reply is complete.
  std::optional<FinishReason> finished() const { return finish_; }
  // Gives out what is held and returns the end of the stream.
  ReplyEnd end(FinishReason finish, std::optional<Error> error);

  // Seconds between the last two tokens, or from the submission to the first.
  double token_gap_s() const { return gap_s_; }
  int64_t n_new() const { return n_tokens() - n_prompt_; }
  RequestProgress progress() const;

 private:
  void score_prompt(const SequenceRows& rows, Rows logits);
  Status draw(std::span<const float> logits);
  void emit(TokenId token, std::span<const float> logits);
  void count_reasoning(bool special, const TextDelta& delta);

  ServeRequest request_;
  std::shared_ptr<RequestStream> stream_;
  const Tokenizer& tokenizer_;
  int64_t context_positions_;
  int64_t n_prompt_;
  std::vector<TokenId> tokens_;  // the prompt, then the reply
  ReplyText text_;
  LogprobGate gate_;
  std::optional<Sampler> sampler_;  // from the first take_state on
  State* state_ = nullptr;
  int64_t n_scored_ = 1;  // prompt tokens whose log probability is out; the first has none
  std::optional<FinishReason> finish_;
  int64_t reasoning_tokens_ = 0;
  int64_t undecided_tokens_ = 0;  // the last ones, which have given no text yet
  Clock::time_point submitted_ = Clock::now();
  Clock::time_point last_token_ = submitted_;
  double queued_s_ = 0.0, ttft_s_ = 0.0, gap_s_ = 0.0;
};

}  // namespace sluice
