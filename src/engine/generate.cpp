#include "engine/generate.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One request under way.
class Generation {
 public:
  Generation(Model& model, Session& session, int64_t context_positions, const TokenRequest& request,
             const std::atomic<bool>* cancel)
      : model_(model),
        session_(session),
        context_positions_(context_positions),
        request_(request),
        cancel_(cancel),
        sampler_(request.sampling, model.config().vocab_size, request.choice),
        logits_(static_cast<size_t>(model.config().vocab_size)) {
    batch_.sequences.push_back({.state = &session.state(), .tokens = {}});
  }

  // Leaves the logits of the last prompt token, and the session marked there.
  Status prefill() {
    const auto& prompt = request_.prompt;
    const int64_t n_prompt = static_cast<int64_t>(prompt.size());
    reply_.stats.reused_tokens = session_.resume(prompt);
    for (int64_t begin = reply_.stats.reused_tokens; begin < n_prompt;) {
      const int64_t end = std::min(n_prompt, begin + model_.rows_max());
      const auto chunk =
          std::span(prompt).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      TRY_OK(forward(chunk, RowFate::kKeep, /*n_logits=*/end == n_prompt ? 1 : 0));
      session_.append(chunk);
      begin = end;
    }
    session_.mark();
    sampler_.add_prompt(prompt);
    reply_.stats.prefill_s = seconds_since(start_);
    return Ok{};
  }

  Status decode(const OnToken& on_token) {
    while (std::ssize(reply_.ids) < request_.max_new) {
      if (cancel_ && *cancel_) return Error{Code::kCancelled, "cancelled between tokens"};
      TRY(const TokenId token, sampler_.draw(logits_, static_cast<uint64_t>(next_position())));
      emit(token);
      const bool go_on = on_token(token);
      if (!go_on || std::ranges::find(request_.stop_ids, token) != request_.stop_ids.end()) {
        reply_.finish = FinishReason::kStop;
        return Ok{};
      }
      // The last token needs no pass: nothing can follow it.
      if (std::ssize(reply_.ids) == request_.max_new || next_position() >= context_positions_)
        break;
      TRY_OK(forward({&token, 1}, RowFate::kTentative, /*n_logits=*/1));
      session_.state().commit(1, model_.compute());
      session_.append({&token, 1});
    }
    reply_.finish = FinishReason::kLength;
    return Ok{};
  }

  TokenReply finish(const Status& status, uint64_t bytes_before, ExpertStore::Stats before) {
    session_.state().rollback();
    if (!status.ok()) {
      const bool cancelled = status.error().code == Code::kCancelled;
      reply_.finish = cancelled ? FinishReason::kCancelled : FinishReason::kError;
      if (!cancelled) reply_.error = status.error();
    }
    GenerateStats& stats = reply_.stats;
    stats.total_s = seconds_since(start_);
    stats.prompt_tokens = std::ssize(request_.prompt);
    stats.new_tokens = std::ssize(reply_.ids);
    if (stats.new_tokens > 1 && last_s_ > stats.ttft_s) {
      stats.decode_tok_s = static_cast<double>(stats.new_tokens - 1) / (last_s_ - stats.ttft_s);
    }
    const ExpertStore::Stats after = model_.expert_stats();
    stats.bytes_read = model_.bytes_read() - bytes_before;
    stats.expert_hits = after.hits - before.hits;
    stats.expert_misses = after.misses - before.misses;
    return std::move(reply_);
  }

 private:
  // Index in the sequence of the token to be drawn.
  int64_t next_position() const { return std::ssize(request_.prompt) + std::ssize(reply_.ids); }

  Status forward(std::span<const TokenId> tokens, RowFate fate, int64_t n_logits) {
    SequenceRows& rows = batch_.sequences.front();
    rows.tokens.assign(tokens.begin(), tokens.end());
    rows.fate = fate;
    rows.n_logits = n_logits;
    const auto vocab_size = static_cast<int64_t>(logits_.size());
    return model_.forward(batch_, {logits_.data(), n_logits, vocab_size}, cancel_, nullptr);
  }

  void emit(TokenId token) {
    last_s_ = seconds_since(start_);
    if (reply_.ids.empty()) reply_.stats.ttft_s = last_s_;
    reply_.ids.push_back(token);
    sampler_.add_reply(token);
  }

  Model& model_;
  Session& session_;
  int64_t context_positions_;
  const TokenRequest& request_;
  const std::atomic<bool>* cancel_;
  Sampler sampler_;
  std::vector<float> logits_;  // [vocab], of the last row computed
  Batch batch_;                // of the one sequence, kept so that a token allocates nothing here
  TokenReply reply_;
  Clock::time_point start_ = Clock::now();
  double last_s_ = 0.0;  // when the last token was drawn
};

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Status validate(const TokenRequest& request, const Config& config, int64_t context_positions) {
  if (request.prompt.empty()) {
    return Error{Code::kInvalid, "the prompt is empty: give at least one token"};
  }
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    const TokenId id = request.prompt[i];
    if (id < 0 || id >= config.vocab_size) {
      return Error{Code::kInvalid, "token id " + std::to_string(id) + " at index " +
                                       std::to_string(i) + " of the prompt is outside the " +
                                       "vocabulary: ids run from 0 to " +
                                       std::to_string(config.vocab_size - 1)};
    }
  }
  if (request.max_new < 0) return Error{Code::kInvalid, "max-new must be 0 or above"};
  if (std::ssize(request.prompt) >= context_positions) {
    const bool can_grow = std::ssize(request.prompt) < config.max_positions;
    return Error{Code::kBudget, "the prompt has " + std::to_string(request.prompt.size()) +
                                    " tokens and leaves no room for a reply in a context of " +
                                    std::to_string(context_positions) +
                                    (can_grow ? "; raise --context" : "; shorten the prompt") +
                                    " (the model's own limit is " +
                                    std::to_string(config.max_positions) + ")"};
  }
  return validate(request.sampling, config.vocab_size);
}

TokenReply generate_tokens(Model& model, Session& session, int64_t context_positions,
                           const TokenRequest& request, const std::atomic<bool>* cancel,
                           const OnToken& on_token) {
  const uint64_t bytes_before = model.bytes_read();
  const ExpertStore::Stats experts_before = model.expert_stats();
  Generation generation(model, session, context_positions, request, cancel);
  Status status = generation.prefill();
  if (status.ok()) status = generation.decode(on_token);
  return generation.finish(status, bytes_before, experts_before);
}

}  // namespace sluice
