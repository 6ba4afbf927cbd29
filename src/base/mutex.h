// std::mutex with the annotations that let clang check what each lock guards. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_ANNOTATE(x) __attribute__((x))
#else
#define SLUICE_ANNOTATE(x)
#endif
#define GUARDED_BY(x) SLUICE_ANNOTATE(guarded_by(x))
#define REQUIRES(...) SLUICE_ANNOTATE(requires_capability(__VA_ARGS__))

namespace sluice {

class SLUICE_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() SLUICE_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() SLUICE_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SLUICE_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) SLUICE_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() SLUICE_ANNOTATE(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

using CondVar = std::condition_variable_any;  // wait on the Mutex itself

}  // namespace sluice
