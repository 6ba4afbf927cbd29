#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace sluice {

Slice slice(int64_t count, int worker, int workers, int64_t grain) {
  const int64_t units = (count + grain - 1) / grain;
  const int64_t begin = units * worker / workers * grain;
  const int64_t end = units * (worker + 1) / workers * grain;
  return {std::min(begin, count), std::min(end, count)};
}

struct ThreadPool::Shared {
  std::vector<std::jthread> workers;
  const WorkRef* work = nullptr;
  std::atomic<uint32_t> round{0};    // bumped to start a round
  std::atomic<uint32_t> pending{0};  // workers still in the round
  std::atomic<bool> stopping{false};
};

ThreadPool::ThreadPool(int threads) : shared_(std::make_unique<Shared>()) {
  for (int worker = 1; worker < threads; ++worker) {
    shared_->workers.emplace_back([shared = shared_.get(), worker, threads] {
      pthread_setname_np(pthread_self(), "sluice-compute");
      for (uint32_t seen = 0;;) {
        shared->round.wait(seen);
        seen = shared->round.load();
        if (shared->stopping) return;
        (*shared->work)(worker, threads);
        if (shared->pending.fetch_sub(1) == 1) shared->pending.notify_one();
      }
    });
  }
}

ThreadPool::~ThreadPool() {
  shared_->stopping = true;
  shared_->round.fetch_add(1);
  shared_->round.notify_all();
}

int ThreadPool::threads() const { return static_cast<int>(shared_->workers.size()) + 1; }

void ThreadPool::run(WorkRef work) {
  shared_->work = &work;
  shared_->pending = static_cast<uint32_t>(shared_->workers.size());
  shared_->round.fetch_add(1);
  shared_->round.notify_all();
  work(0, threads());
  for (uint32_t left; (left = shared_->pending.load()) != 0;) shared_->pending.wait(left);
}

}  // namespace sluice
