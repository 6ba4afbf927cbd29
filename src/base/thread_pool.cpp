#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

// A waiter looks for this long before it sleeps in the kernel: longer than any serial stretch
// between two products of a pass, so that a round inside a pass never pays for waking a sleeper
// (tens of us).
constexpr auto kSpin = std::chrono::microseconds(200);
// After this much of it the waiter offers its core between two looks: with more threads than cores,
// or on a busy host, whoever is awaited may need that very core.
constexpr auto kSpinAlone = std::chrono::microseconds(1);
constexpr int kLooksPerClock = 8;

// Tells the core that this is a wait loop.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `value` is no longer `old`.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  const Clock::time_point start = Clock::now();
  for (Clock::duration spent{0}; spent < kSpin; spent = Clock::now() - start) {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (value.load() != old) return;
      pause_core();
    }
    if (spent > kSpinAlone) std::this_thread::yield();
  }
  value.wait(old);
}

}  // namespace

Slice slice(int64_t count, int worker, int workers, int64_t grain) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t begin = units * worker / workers * grain;
  const int64_t end = units * (worker + 1) / workers * grain;
  return {std::min(begin, count), std::min(end, count)};
}

// The owner writes `work` and then `round`; worker w answers by setting done[w - 1] to the round.
// Each counter has a cache line of its own: a worker's answer disturbs nobody but the owner.
struct ThreadPool::Shared {
  struct alignas(64) Counter {
    std::atomic<uint32_t> value{0};
  };

  explicit Shared(int n_threads) : threads(n_threads), done(static_cast<size_t>(n_threads - 1)) {}

  void work_until_stopped(int worker) {
    pthread_setname_np(pthread_self(), "sluice-compute");
    Counter& answer = done[static_cast<size_t>(worker - 1)];
    for (uint32_t seen = 0;;) {
      wait_for_change(round.value, seen);
      seen = seen + 1;
      if (stopping) return;
      (*work)(worker, threads);
      answer.value.store(seen);
      answer.value.notify_one();
    }
  }

  void start_round() {
    round.value.fetch_add(1);
    round.value.notify_all();
  }

  const int threads;
  std::vector<Counter> done;
  Counter round;
  const WorkRef* work = nullptr;  // written before `round`
  bool stopping = false;          // written before `round`
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int threads) : shared_(std::make_unique<Shared>(threads)) {
  for (int worker = 1; worker < threads; ++worker) {
    shared_->workers.emplace_back(&Shared::work_until_stopped, shared_.get(), worker);
  }
}

ThreadPool::~ThreadPool() {
  shared_->stopping = true;
  shared_->start_round();
  for (std::thread& worker : shared_->workers) worker.join();
}

int ThreadPool::threads() const { return shared_->threads; }

void ThreadPool::run(WorkRef work) {
  if (shared_->threads == 1) return work(0, 1);
  shared_->work = &work;
  const uint32_t last = shared_->round.value.load();
  shared_->start_round();
  work(0, shared_->threads);
  for (const Shared::Counter& answer : shared_->done) {
    wait_for_change(answer.value, last);
  }
}

}  // namespace sluice
