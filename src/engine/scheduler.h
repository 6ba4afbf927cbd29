// Continuous batching: one thread runs passes over rows of many requests, which join and leave
// between passes. Each reply is byte for byte that of the same request alone.
// Thread-safe, but for construction and destruction.
//
// Requests beyond the slots wait in a bounded queue, first in, first out. A request that ends in an
// error leaves the others as they were: the rows of a failed pass are run again in halves until the
// error is that of one request. When the pool of positions is full the youngest request goes back
// to the head of the queue; its tokens stay and their state is computed again later.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "engine/active_request.h"
#include "engine/loaded_model.h"
#include "engine/pass_shares.h"
#include "engine/pass_times.h"
#include "engine/request_stream.h"
#include "engine/serving_stats.h"

namespace sluice {

struct SchedulerOptions {
  int64_t queue_max = 64;  // requests that wait, at most
  // What a pass may take while replies wait for its end; 0: twice what it takes without prompts.
  double pass_s_max = 0.0;
};

enum class Admission { kAccepted, kQueueFull, kDraining };

struct Submitted {
  Admission admission = Admission::kAccepted;
  std::vector<std::shared_ptr<RequestStream>> streams;  // of the requests, in their order
};

class Scheduler {
 public:
  // Slots as the plan says. `loaded` outlives this object, which alone uses its model and pages.
  Scheduler(LoadedModel& loaded, SchedulerOptions options);
  // Cancels what runs and waits.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // kInvalid, kBudget: what cannot be run.
  Status validate(const ServeRequest& request) const;
  // All of the validated requests or none.
  Submitted submit(std::vector<ServeRequest> requests);
  // Ends the request at once with what it has; its rows leave the passes within a layer, or with
  // the end of the pass if that would throw away more of others' work than it saves.
  void cancel(RequestStream& stream);
  // The same for every request of that id; how many there were.
  int64_t cancel(std::string_view id);

  // From here on nothing is accepted.
  void drain();
  // Waits until nothing runs or waits; false after `seconds`.
  bool wait_idle(double seconds);

  ServingStats stats() const;
  // Running ones first, then the queue in its order.
  std::vector<RequestStatus> requests() const;
  // After how many seconds a refused request may try again.
  int64_t retry_after_s() const;

 private:
  using Clock = std::chrono::steady_clock;
  // A request's rows in the pass at hand.
  struct Share {
    ActiveRequest* request;
    int64_t rows;
  };
  // What other threads may see of a running request.
  struct Running {
    std::string id;
    size_t index;
    int64_t max_new;
    Clock::time_point submitted;
    std::shared_ptr<RequestStream> stream;
    int64_t pass_rows = 0;
  };

  void run();
  bool wait_for_work();
  void drop_ended();
  void admit();
  bool fits(const ActiveRequest& request) const;
  void start(std::unique_ptr<ActiveRequest> request);

  void run_pass();
  std::vector<Share> plan_pass();
  bool reserve(ActiveRequest& request, int64_t rows);
  void preempt();
  void run_shares(std::span<const Share> shares);
  void take_in(std::span<const Share> shares);
  void begin_pass(std::span<const Share> shares);
  void end_pass(int64_t rows, double seconds, bool ok);

  void end(ActiveRequest& request, FinishReason finish, std::optional<Error> error);
  void count_end(FinishReason finish, const ReplyUsage& usage) REQUIRES(mutex_);
  void publish_running() REQUIRES(mutex_);
  bool should_stop_pass() const REQUIRES(mutex_);
  RequestStatus status_of(const Running& running, Clock::time_point now) const REQUIRES(mutex_);
  RequestStatus status_of_waiting(size_t index, Clock::time_point now) const REQUIRES(mutex_);
  void announce_queue();

  LoadedModel& loaded_;
  const SchedulerOptions options_;

  // The scheduler's thread alone.
  std::vector<std::unique_ptr<State>> states_;
  std::vector<State*> free_states_;
  std::vector<std::unique_ptr<ActiveRequest>> active_;  // in the order of admission
  FloatBuffer logits_;                                  // [logit rows, vocab]
  Batch batch_;
  std::atomic<bool> stop_pass_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<ActiveRequest>> waiting_ GUARDED_BY(mutex_);
  std::vector<Running> running_ GUARDED_BY(mutex_);
  Clock::time_point pass_started_ GUARDED_BY(mutex_);
  PassTimes times_ GUARDED_BY(mutex_);
  ServingStats stats_ GUARDED_BY(mutex_);
  bool last_pass_stopped_ GUARDED_BY(mutex_) = false;
  bool draining_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace sluice
