// The compute threads: every worker once a round, whatever the machine's number of cores.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice {

namespace {

struct alignas(64) Count {
  int64_t calls = 0;
};

// Runs `rounds` rounds; each worker counts its own calls without atomics, so that ThreadSanitizer
// sees any round that overlaps the next or is read before its end.
void expect_each_worker_once(int threads, int rounds) {
  ThreadPool pool(threads);
  ASSERT_EQ(pool.threads(), threads);
  std::vector<Count> counts(static_cast<size_t>(threads));
  int64_t wrong = 0;
  for (int round = 1; round <= rounds; ++round) {
    pool.run([&](int worker, int workers) {
      if (workers == threads) ++counts[static_cast<size_t>(worker)].calls;
    });
    for (const Count& count : counts) wrong += count.calls != round;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, EachWorkerRunsExactlyOnceARound) { expect_each_worker_once(2, 100'000); }

TEST(ThreadPool, OneThreadIsTheCallerAlone) {
  ThreadPool pool(1);
  const auto caller = std::this_thread::get_id();
  bool called = false;
  pool.run([&](int worker, int workers) {
    called = true;
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(workers, 1);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_TRUE(called);
}

TEST(ThreadPool, MoreThreadsThanCoresStillFinish) { expect_each_worker_once(8, 10'000); }

TEST(ThreadPool, TheCallerIsWorkerZero) {
  ThreadPool pool(3);
  const auto caller = std::this_thread::get_id();
  std::vector<int> is_caller(3, -1);
  pool.run([&](int worker, int) {
    is_caller[static_cast<size_t>(worker)] = std::this_thread::get_id() == caller;
  });
  EXPECT_EQ(is_caller, (std::vector<int>{1, 0, 0}));
}

TEST(ThreadPool, SleepersWakeAfterAnIdleGap) {
  ThreadPool pool(3);
  std::vector<Count> counts(3);
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
    pool.run([&](int worker, int) { ++counts[static_cast<size_t>(worker)].calls; });
  }
  for (const Count& count : counts) EXPECT_EQ(count.calls, 50);
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(1 + i % 5);
    int calls = 0;
    if (i % 2 == 1) {
      pool.run([&](int worker, int) {
        if (worker == 0) ++calls;
      });
    }
    EXPECT_EQ(calls, i % 2);
  }
}

TEST(Slice, CoversEveryItemOnceInOrderAndInUnitsOfTheGrain) {
  for (int64_t count : {0, 1, 7, 8, 9, 100, 3584}) {
    for (int workers : {1, 2, 3, 5, 64}) {
      for (int64_t grain : {1, 8}) {
        int64_t next = 0;
        for (int worker = 0; worker < workers; ++worker) {
          const Slice part = slice(count, worker, workers, grain);
          EXPECT_EQ(part.begin, next);
          EXPECT_LE(part.begin, part.end);
          if (part.end != count) {
            EXPECT_EQ(part.end % grain, 0);
          }
          next = part.end;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

}  // namespace

}  // namespace sluice
