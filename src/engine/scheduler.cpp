#include "engine/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {
namespace {

double seconds_between(std::chrono::steady_clock::time_point a,
                       std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

Scheduler::Scheduler(LoadedModel& loaded, SchedulerOptions options)
    : loaded_(loaded),
      options_(options),
      logits_(loaded.plan().logit_rows * loaded.config().vocab_size) {
  for (int64_t i = 0; i < loaded.plan().n_sequences; ++i) {
    states_.push_back(loaded.new_state());
    free_states_.push_back(states_.back().get());
  }
  thread_ = std::thread([this] { run(); });
}

Scheduler::~Scheduler() {
  {
    Lock lock(mutex_);
    stopping_ = draining_ = true;
    stop_pass_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status Scheduler::validate(const ServeRequest& request) const {
  return sluice::validate(request.tokens, loaded_.config(), loaded_.plan().context_positions);
}

Submitted Scheduler::submit(std::vector<ServeRequest> requests) {
  Submitted submitted;
  std::vector<std::unique_ptr<ActiveRequest>> accepted;
  for (ServeRequest& request : requests) {
    auto stream = std::make_shared<RequestStream>();
    submitted.streams.push_back(stream);
    accepted.push_back(std::make_unique<ActiveRequest>(
        std::move(request), std::move(stream), loaded_.tokenizer(),
        loaded_.plan().context_positions, loaded_.config().eos_token_id));
  }
  {
    Lock lock(mutex_);
    const auto n_running = std::ssize(running_);
    const int64_t n_free = loaded_.plan().n_sequences - n_running;
    const int64_t n_all = std::ssize(waiting_) + std::ssize(accepted);
    if (draining_)
      submitted.admission = Admission::kDraining;
    else if (n_all > options_.queue_max + std::max<int64_t>(n_free, 0)) {
      submitted.admission = Admission::kQueueFull;
      ++stats_.refused;
    }
    if (submitted.admission != Admission::kAccepted) {
      submitted.streams.clear();
      return submitted;
    }
    for (auto& request : accepted) waiting_.push_back(std::move(request));
  }
  announce_queue();
  changed_.notify_all();
  return submitted;
}

void Scheduler::cancel(RequestStream& stream) {
  const RequestProgress progress = stream.progress();
  const ReplyEnd end{
      .finish = FinishReason::kCancelled,
      .error = std::nullopt,
      .usage = {.prompt_tokens = progress.prompt_tokens, .new_tokens = progress.new_tokens}};
  if (!stream.finish(end)) return;
  std::unique_ptr<ActiveRequest> removed;  // destroyed without the lock
  {
    Lock lock(mutex_);
    count_end(end.finish, end.usage);
    const auto found = std::ranges::find_if(
        waiting_, [&](const auto& request) { return request->stream().get() == &stream; });
    if (found != waiting_.end()) {
      removed = std::move(*found);
      waiting_.erase(found);
    }
    if (should_stop_pass()) stop_pass_ = true;
  }
  if (removed) announce_queue();
  changed_.notify_all();
}

int64_t Scheduler::cancel(std::string_view id) {
  std::vector<std::shared_ptr<RequestStream>> streams;
  {
    Lock lock(mutex_);
    for (const Running& running : running_) {
      if (running.id == id && !running.stream->ended()) streams.push_back(running.stream);
    }
    for (const auto& request : waiting_) {
      if (request->id() == id) streams.push_back(request->stream());
    }
  }
  for (const auto& stream : streams) cancel(*stream);
  return std::ssize(streams);
}

// Worth it when nobody waits for the pass, or when more rows are spared than lost; but a pass that
// was stopped once is run to its end, so that cancelling cannot hold others up for ever.
bool Scheduler::should_stop_pass() const {
  int64_t live_rows = 0;
  int64_t dead_rows = 0;
  for (const Running& running : running_) {
    (running.stream->ended() ? dead_rows : live_rows) += running.pass_rows;
  }
  if (stopping_) return true;
  if (dead_rows == 0) return false;
  return live_rows == 0 || (dead_rows > live_rows && !last_pass_stopped_);
}

void Scheduler::drain() {
  Lock lock(mutex_);
  draining_ = true;
}

bool Scheduler::wait_idle(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  Lock lock(mutex_);
  while (!waiting_.empty() || !running_.empty()) {
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      return waiting_.empty() && running_.empty();
    }
  }
  return true;
}

ServingStats Scheduler::stats() const {
  Lock lock(mutex_);
  ServingStats stats = stats_;
  stats.queued = std::ssize(waiting_);
  stats.running = std::ranges::count_if(
      running_, [](const Running& running) { return !running.stream->ended(); });
  return stats;
}

int64_t Scheduler::retry_after_s() const {
  constexpr double kLeast = 1.0, kMost = 3600.0;
  Lock lock(mutex_);
  const double each = stats_.request_s / static_cast<double>(loaded_.plan().n_sequences);
  return static_cast<int64_t>(std::ceil(std::clamp(each, kLeast, kMost)));
}

std::vector<RequestStatus> Scheduler::requests() const {
  const Clock::time_point now = Clock::now();
  std::vector<RequestStatus> out;
  Lock lock(mutex_);
  for (const Running& running : running_) {
    if (!running.stream->ended()) out.push_back(status_of(running, now));
  }
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (!waiting_[i]->stream()->ended()) out.push_back(status_of_waiting(i, now));
  }
  return out;
}

RequestStatus Scheduler::status_of(const Running& running, Clock::time_point now) const {
  RequestStatus status{.id = running.id,
                       .index = running.index,
                       .progress = running.stream->progress(),
                       .max_new = running.max_new,
                       .age_s = seconds_between(running.submitted, now)};
  if (!times_.known()) return status;
  const double in_pass_s = running.pass_rows > 0 ? seconds_between(pass_started_, now) : 0.0;
  const int64_t rows_max = loaded_.plan().memory.rows_max;
  const int64_t prompt_left = status.progress.prompt_tokens - status.progress.prompt_done;
  double first_s = 0.0;
  if (status.progress.new_tokens == 0) {
    const int64_t passes = std::max<int64_t>((prompt_left + rows_max - 1) / rows_max, 1);
    const double pass_s = times_.predict_s(std::clamp<int64_t>(prompt_left, 1, rows_max));
    first_s = std::max(0.0, static_cast<double>(passes) * pass_s - in_pass_s);
    status.first_token_eta_s = first_s;
  }
  const int64_t tokens_left = std::max<int64_t>(0, running.max_new - status.progress.new_tokens);
  status.end_eta_s =
      first_s + static_cast<double>(tokens_left) * times_.predict_s(std::ssize(running_));
  return status;
}

RequestStatus Scheduler::status_of_waiting(size_t index, Clock::time_point now) const {
  const ActiveRequest& request = *waiting_[index];
  RequestStatus status{.id = request.id(),
                       .index = request.index(),
                       .progress = request.progress(),
                       .max_new = request.max_new(),
                       .age_s = seconds_between(request.submitted(), now)};
  status.progress.queue_position = static_cast<int64_t>(index) + 1;
  if (!times_.known() || stats_.request_s == 0.0) return status;
  const auto slots = static_cast<double>(loaded_.plan().n_sequences);
  const double turns = std::ceil(static_cast<double>(index + 1) / slots);
  const int64_t rows = std::min(request.n_tokens(), loaded_.plan().memory.rows_max);
  status.first_token_eta_s = turns * stats_.request_s + times_.predict_s(rows);
  status.end_eta_s = (turns + 1.0) * stats_.request_s;
  return status;
}

// Tells those that wait how many are before them.
void Scheduler::announce_queue() {
  std::vector<std::pair<std::shared_ptr<RequestStream>, RequestProgress>> news;
  {
    Lock lock(mutex_);
    for (size_t i = 0; i < waiting_.size(); ++i) {
      RequestProgress progress = waiting_[i]->progress();
      progress.queue_position = static_cast<int64_t>(i) + 1;
      news.emplace_back(waiting_[i]->stream(), progress);
    }
  }
  for (const auto& [stream, progress] : news) stream->set_progress(progress);
}

void Scheduler::count_end(FinishReason finish, const ReplyUsage& usage) {
  constexpr double kFade = 0.8;
  ++stats_.finished[finish];
  if (finish == FinishReason::kCancelled || finish == FinishReason::kError) return;
  const double request_s = usage.total_s - usage.queued_s;
  stats_.request_s =
      stats_.request_s == 0.0 ? request_s : kFade * stats_.request_s + (1.0 - kFade) * request_s;
}

}  // namespace sluice
