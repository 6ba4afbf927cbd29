#include "server/request_group.h"

#include <array>
#include <cstdio>
#include <random>
#include <utility>

namespace sluice {

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 3; ++i) {
    std::array<char, 9> digits;
    std::snprintf(digits.data(), digits.size(), "%08x", device());
    id += digits.data();
  }
  return id;
}

std::unique_ptr<RequestGroup> RequestGroup::submit(const ApiContext& context, std::string id,
                                                   int64_t n, std::vector<ServeRequest> requests,
                                                   ApiError& refusal) {
  for (ServeRequest& request : requests) request.id = id;
  Submitted submitted = context.scheduler.submit(std::move(requests));
  switch (submitted.admission) {
    case Admission::kAccepted:
      return std::unique_ptr<RequestGroup>(
          new RequestGroup(context, std::move(id), n, std::move(submitted.streams)));
    case Admission::kQueueFull:
      refusal = {.status = 429,
                 .message =
                     "the queue of waiting requests is full; try again later, or start the "
                     "server with a larger --queue",
                 .type = "rate_limit_error",
                 .code = "queue_full",
                 .retry_after_s = context.scheduler.retry_after_s()};
      return nullptr;
    case Admission::kDraining:
      refusal = {.status = 503,
                 .message = "the server is shutting down and takes no more requests",
                 .type = "server_error",
                 .code = "draining",
                 .retry_after_s = 30};
      return nullptr;
  }
  return nullptr;
}

RequestGroup::RequestGroup(const ApiContext& context, std::string id, int64_t n,
                           std::vector<std::shared_ptr<RequestStream>> streams)
    : context_(context),
      id_(std::move(id)),
      n_(static_cast<size_t>(n)),
      streams_(std::move(streams)),
      ends_(streams_.size()) {}

RequestGroup::~RequestGroup() {
  for (size_t i = 0; i < size(); ++i) {
    streams_[i]->on_ready(nullptr);
    if (!ends_[i]) context_.scheduler.cancel(*streams_[i]);
    take(i);
  }
  log_end();
}

void RequestGroup::on_ready(const std::function<void()>& wake) {
  for (const auto& stream : streams_) stream->on_ready(wake);
}

ReplyEvents RequestGroup::take(size_t index) {
  ReplyEvents events = streams_[index]->take();
  if (events.end && !ends_[index]) {
    ends_[index] = events.end;
    ++n_ended_;
  }
  return events;
}

const Error* RequestGroup::error() const {
  for (const auto& end : ends_) {
    if (end && end->error) return &*end->error;
  }
  return nullptr;
}

ReplyUsage RequestGroup::usage() const {
  ReplyUsage sum;
  for (size_t i = 0; i < size(); ++i) {
    if (!ends_[i]) continue;
    const ReplyUsage& usage = ends_[i]->usage;
    sum.new_tokens += usage.new_tokens;
    sum.reasoning_tokens += usage.reasoning_tokens;
    sum.ttft_s = std::max(sum.ttft_s, usage.ttft_s);
    sum.queued_s = std::max(sum.queued_s, usage.queued_s);
    sum.total_s = std::max(sum.total_s, usage.total_s);
    if (i % n_ != 0) continue;
    sum.prompt_tokens += usage.prompt_tokens;
    sum.cached_tokens += usage.cached_tokens;
  }
  return sum;
}

void RequestGroup::log_end() const {
  if (!context_.log) return;
  const ReplyUsage sum = usage();
  std::string finishes;
  for (const auto& end : ends_) {
    if (!end) continue;
    finishes += (finishes.empty() ? "" : ",") + std::string(finish_reason_name(end->finish));
  }
  std::array<char, 160> numbers;
  std::snprintf(numbers.data(), numbers.size(),
                "prompt %lld new %lld tokens, queued %.2f s, first token %.2f s, total %.2f s",
                static_cast<long long>(sum.prompt_tokens), static_cast<long long>(sum.new_tokens),
                sum.queued_s, sum.ttft_s, sum.total_s);
  std::string line = id_ + " " + finishes + ": " + numbers.data();
  if (const Error* failed = error()) line += ": " + failed->what;
  context_.log(line);
}

}  // namespace sluice
