#include "engine/request_stream.h"

#include <iterator>
#include <utility>

namespace sluice {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

const char* request_phase_name(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kQueued:
      return "queued";
    case RequestPhase::kPrefill:
      return "prefill";
    case RequestPhase::kDecoding:
      return "decoding";
    case RequestPhase::kDone:
      return "done";
  }
  return "done";
}

void RequestStream::on_ready(std::function<void()> wake) {
  {
    Lock lock(mutex_);
    wake_ = std::move(wake);
  }
  this->wake();
}

ReplyEvents RequestStream::take() {
  Lock lock(mutex_);
  return std::exchange(events_, {});
}

RequestProgress RequestStream::progress() const {
  Lock lock(mutex_);
  return progress_;
}

bool RequestStream::ended() const {
  Lock lock(mutex_);
  return ended_;
}

void RequestStream::push(TextDelta delta, std::vector<TokenLogprobs> logprobs) {
  {
    Lock lock(mutex_);
    if (ended_) return;
    events_.delta.reasoning += delta.reasoning;
    events_.delta.text += delta.text;
    append(events_.delta.calls, std::move(delta.calls));
    append(events_.logprobs, std::move(logprobs));
  }
  wake();
}

void RequestStream::push_prompt_logprobs(std::vector<TokenLogprobs> logprobs) {
  {
    Lock lock(mutex_);
    if (ended_) return;
    append(events_.prompt_logprobs, std::move(logprobs));
  }
  wake();
}

void RequestStream::set_progress(const RequestProgress& progress) {
  {
    Lock lock(mutex_);
    if (ended_) return;
    RequestProgress before = std::exchange(progress_, progress);
    before.new_tokens = progress.new_tokens;
    if (progress == before) return;
    events_.progress = progress;
  }
  wake();
}

bool RequestStream::finish(ReplyEnd end) {
  {
    Lock lock(mutex_);
    if (ended_) return false;
    ended_ = true;
    progress_.phase = RequestPhase::kDone;
    progress_.queue_position = 0;
    events_.end = std::move(end);
  }
  wake();
  return true;
}

void RequestStream::wake() {
  std::function<void()> call;
  {
    Lock lock(mutex_);
    call = wake_;
  }
  if (call) call();
}

}  // namespace sluice
