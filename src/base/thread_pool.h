// The compute threads: one fork-join at a time over a fixed set of workers.
// One owner: only the owning thread calls run(). The caller is worker 0.
// Work is split by worker index, never by arrival, so a result cannot depend on timing.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace sluice {

// A borrowed callable `void(int worker, int workers)`; lives no longer than the call it is given
// to.
class WorkRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, WorkRef>)
      WorkRef(F&& f)  // NOLINT: implicit by design
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, int worker, int workers) {
          (*static_cast<std::remove_reference_t<F>*>(object))(worker, workers);
        }) {}
  void operator()(int worker, int workers) const { call_(object_, worker, workers); }

 private:
  void* object_;
  void (*call_)(void*, int, int);
};

// The half-open range of [0, count) that `worker` of `workers` takes, in units of `grain`.
struct Slice {
  int64_t begin, end;
};
Slice slice(int64_t count, int worker, int workers, int64_t grain = 1);

class ThreadPool {
 public:
  // `threads` >= 1 in all, the caller included; threads - 1 are started, named "sluice-compute".
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // Calls work(worker, threads()) once on every worker; returns when all are done.
  void run(WorkRef work);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace sluice
