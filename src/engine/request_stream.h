// One request's events on their way from the thread that computes to the thread that serves them.
// Thread-safe. Invariant: nothing comes after the end, and the end comes once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "engine/generate.h"
#include "engine/reply_text.h"
#include "engine/token_logprobs.h"

namespace sluice {

enum class RequestPhase { kQueued, kPrefill, kDecoding, kDone };

const char* request_phase_name(RequestPhase phase);

// How far a request is.
struct RequestProgress {
  RequestPhase phase = RequestPhase::kQueued;
  int64_t queue_position = 0;  // requests before it; 0 when it is not queued
  int64_t prompt_tokens = 0;
  int64_t prompt_done = 0;  // of them, those that need no pass any more
  int64_t new_tokens = 0;
  bool operator==(const RequestProgress&) const = default;
};

struct ReplyUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of them, those whose state was stored before
  int64_t new_tokens = 0;
  int64_t reasoning_tokens = 0;  // of the new ones
  // Seconds from the submission: until it left the queue, the first token, the end.
  double queued_s = 0.0;
  double ttft_s = 0.0;
  double total_s = 0.0;
};

struct ReplyEnd {
  FinishReason finish = FinishReason::kLength;
  std::optional<Error> error;  // set when finish is kError
  ReplyUsage usage;
};

// What came since the last take(). Text, reasoning and calls are each in order.
struct ReplyEvents {
  TextDelta delta;
  std::vector<TokenLogprobs> logprobs;         // of the text's tokens, if asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // of prompt tokens 1, 2, ..., if asked for
  std::optional<RequestProgress> progress;     // if more of it changed than new_tokens
  std::optional<ReplyEnd> end;
};

class RequestStream {
 public:
  // The serving side. `wake` is called, from any thread and with no lock held, when there is
  // something to take; at once if there is already. An empty function stops that, though a call may
  // still be under way.
  void on_ready(std::function<void()> wake);
  ReplyEvents take();
  RequestProgress progress() const;
  bool ended() const;

  // The computing side.
  void push(TextDelta delta, std::vector<TokenLogprobs> logprobs);
  void push_prompt_logprobs(std::vector<TokenLogprobs> logprobs);
  void set_progress(const RequestProgress& progress);
  // False when it had ended already: the caller's end is not the one that counts.
  bool finish(ReplyEnd end);

 private:
  void wake();

  mutable Mutex mutex_;
  ReplyEvents events_ GUARDED_BY(mutex_);
  RequestProgress progress_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ GUARDED_BY(mutex_);
};

}  // namespace sluice
