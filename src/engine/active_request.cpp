#include "engine/active_request.h"

#include <algorithm>
#include <span>
#include <utility>

namespace sluice {
namespace {

double seconds(ActiveRequest::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

ActiveRequest::ActiveRequest(ServeRequest request, std::shared_ptr<RequestStream> stream,
                             const Tokenizer& tokenizer, int64_t context_positions,
                             TokenId end_token)
    : request_(std::move(request)),
      stream_(std::move(stream)),
      tokenizer_(tokenizer),
      context_positions_(context_positions),
      n_prompt_(std::ssize(request_.tokens.prompt)),
      tokens_(std::move(request_.tokens.prompt)),
      text_(tokenizer, request_.form, std::move(request_.stop_strings)),
      gate_(request_.form) {
  request_.tokens.stop_ids.push_back(end_token);
}

bool ActiveRequest::needs_no_pass() const {
  return request_.tokens.max_new == 0 && !request_.prompt_logprobs;
}

void ActiveRequest::take_state(State& state, int64_t vocab_size) {
  CHECK(state_ == nullptr && state.length() == 0);
  state_ = &state;
  if (sampler_) return;
  queued_s_ = seconds(Clock::now() - submitted_);
  sampler_.emplace(request_.tokens.sampling, vocab_size, request_.tokens.choice);
  sampler_->add_prompt(tokens_);
}

State& ActiveRequest::give_state() {
  state_->reset();
  return *std::exchange(state_, nullptr);
}

RowDemand ActiveRequest::demand() const {
  const int64_t rows = n_tokens() - state_->length();
  return {.rows = rows,
          .decoding = rows == 1 && n_new() > 0,
          .all_logits = request_.prompt_logprobs && n_scored_ < n_prompt_};
}

void ActiveRequest::fill(int64_t rows, SequenceRows& out) const {
  const int64_t begin = state_->length();
  const RowDemand demand = this->demand();
  out.state = state_;
  out.tokens.assign(tokens_.begin() + begin, tokens_.begin() + begin + rows);
  out.fate = demand.decoding ? RowFate::kTentative : RowFate::kKeep;
  out.n_logits = demand.all_logits ? rows : rows == demand.rows ? 1 : 0;
}

Status ActiveRequest::advance(const SequenceRows& rows, Rows logits, const Compute& compute) {
  if (rows.fate == RowFate::kTentative) state_->commit(1, compute);
  if (rows.n_logits == std::ssize(rows.tokens)) score_prompt(rows, logits);
  if (state_->length() < n_tokens()) return Ok{};
  if (request_.tokens.max_new == 0) {
    finish_ = FinishReason::kLength;
    return Ok{};
  }
  return draw({logits.row(rows.n_logits - 1), static_cast<size_t>(logits.stride)});
}

void ActiveRequest::score_prompt(const SequenceRows& rows, Rows logits) {
  if (!request_.prompt_logprobs || n_scored_ >= n_prompt_) return;
  const int64_t begin = state_->length() - std::ssize(rows.tokens);
  std::vector<TokenLogprobs> scores;
  for (int64_t row = 0; row < rows.n_logits; ++row) {
    const int64_t next = begin + row + 1;  // the token whose chance the row tells
    if (next < n_scored_ || next >= n_prompt_) continue;
    scores.push_back(token_logprobs({logits.row(row), static_cast<size_t>(logits.stride)},
                                    tokens_[static_cast<size_t>(next)],
                                    request_.logprobs.value_or(0)));
    n_scored_ = next + 1;
  }
  stream_->push_prompt_logprobs(std::move(scores));
}

Status ActiveRequest::draw(std::span<const float> logits) {
  TRY(const TokenId token, sampler_->draw(logits, static_cast<uint64_t>(n_tokens())));
  const Clock::time_point now = Clock::now();
  gap_s_ = seconds(now - (n_new() == 0 ? submitted_ : last_token_));
  if (n_new() == 0) ttft_s_ = gap_s_;
  last_token_ = now;
  emit(token, logits);
  const auto& stops = request_.tokens.stop_ids;
  if (text_.stopped() || std::ranges::find(stops, token) != stops.end()) {
    finish_ = FinishReason::kStop;
  } else if (n_new() == request_.tokens.max_new || n_tokens() >= context_positions_) {
    finish_ = FinishReason::kLength;
  }
  return Ok{};
}

void ActiveRequest::emit(TokenId token, std::span<const float> logits) {
  tokens_.push_back(token);
  sampler_->add_reply(token);
  TextDelta delta = text_.push(token);
  const bool special = tokenizer_.is_special(token);
  count_reasoning(special, delta);
  std::vector<TokenLogprobs> shown;
  if (request_.logprobs) {
    shown = gate_.push(token_logprobs(logits, token, *request_.logprobs), special, delta);
  }
  if (!delta.empty() || !shown.empty()) stream_->push(std::move(delta), std::move(shown));
}

void ActiveRequest::count_reasoning(bool special, const TextDelta& delta) {
  ++undecided_tokens_;
  const bool silent = delta.reasoning.empty() && delta.text_bytes == 0 && delta.calls.empty();
  if (!delta.reasoning.empty()) reasoning_tokens_ += undecided_tokens_ - (special ? 1 : 0);
  if (special || !silent) undecided_tokens_ = 0;
}

ReplyEnd ActiveRequest::end(FinishReason finish, std::optional<Error> error) {
  TextDelta delta = text_.finish();
  std::vector<TokenLogprobs> shown;
  if (request_.logprobs) shown = gate_.finish(delta, text_.stopped());
  stream_->push(std::move(delta), std::move(shown));
  if (finish == FinishReason::kStop && !text_.tool_calls().empty()) {
    finish = FinishReason::kToolCalls;
  }
  return {.finish = finish,
          .error = std::move(error),
          .usage = {.prompt_tokens = n_prompt_,
                    .cached_tokens = 0,
                    .new_tokens = n_new(),
                    .reasoning_tokens = reasoning_tokens_,
                    .queued_s = queued_s_,
                    .ttft_s = ttft_s_,
                    .total_s = seconds(Clock::now() - submitted_)}};
}

RequestProgress ActiveRequest::progress() const {
  RequestProgress progress{.prompt_tokens = n_prompt_, .new_tokens = n_new()};
  if (state_ == nullptr) return progress;
  progress.phase = n_new() > 0 ? RequestPhase::kDecoding : RequestPhase::kPrefill;
  progress.prompt_done = std::min(n_prompt_, state_->length());
  return progress;
}

}  // namespace sluice
