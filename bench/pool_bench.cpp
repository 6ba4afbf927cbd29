// pool_bench [THREADS_MAX]: the time of one fork-join round of base/thread_pool.h, one JSON line
// per arm: 1..THREADS_MAX threads (default: the cores of the host), work that is empty or about 2
// us a worker, and rounds back to back or after a pause.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/thread_pool.h"
#include "bench/measure.h"

namespace sluice {

namespace {

struct Arm {
  int threads;
  int work_steps;  // dependent multiplications of each worker
  int gap_us;      // slept by the owner between two rounds
  int rounds;
};

void busy(int steps) {
  volatile float value = 1.0f;
  for (int i = 0; i < steps; ++i) value = value * 0.999f;
}

void measure(const Arm& arm) {
  ThreadPool pool(arm.threads);
  std::vector<double> us;
  for (int round = 0; round < arm.rounds; ++round) {
    if (arm.gap_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(arm.gap_us));
    us.push_back(1e6 * seconds([&] { pool.run([&](int, int) { busy(arm.work_steps); }); }));
  }
  std::printf(
      "{\"bench\":\"pool\",\"host_cores\":%d,\"threads\":%d,\"work\":\"%s\",\"gap_us\":%d,"
      "\"rounds\":%d,\"p50_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.1f}\n",
      host_cores(), arm.threads, arm.work_steps > 0 ? "2us" : "none", arm.gap_us, arm.rounds,
      percentile(us, 0.5), percentile(us, 0.99), percentile(us, 1.0));
}

}  // namespace

}  // namespace sluice

int main(int argc, char** argv) {
  const int threads_max = argc > 1 ? std::atoi(argv[1]) : sluice::host_cores();
  for (int threads = 1; threads <= threads_max; ++threads) {
    for (int work_steps : {0, 600}) {
      sluice::measure({threads, work_steps, 0, 20000});
      sluice::measure({threads, work_steps, 50, 2000});
      sluice::measure({threads, work_steps, 1000, 500});
    }
  }
  return 0;
}
