#include "io/emulated_drive.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace sluice {
namespace {

// Lateness below this is the system's timer, not the bytes.
constexpr double kLateS = 20e-6;

class SteadyClock final : public DriveClock {
 public:
  double now_s() override { return seconds(std::chrono::steady_clock::now()); }
  void sleep_until(double time_s) override {
    const double left_s = time_s - now_s();
    if (left_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left_s));
  }

 private:
  static double seconds(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  }
};

}  // namespace

std::shared_ptr<DriveClock> DriveClock::steady() { return std::make_shared<SteadyClock>(); }

EmulatedDrive::EmulatedDrive(const DriveTraits& traits, std::shared_ptr<DriveClock> clock)
    : traits_(traits), clock_(std::move(clock)) {
  CHECK(traits_.bytes_s > 0 && traits_.latency_s >= 0);
}

double EmulatedDrive::begin(uint64_t bytes) {
  const double now_s = clock_->now_s();
  const double service_s = static_cast<double>(bytes) / static_cast<double>(traits_.bytes_s);
  const Lock lock(mutex_);
  free_s_ = std::max(now_s, free_s_) + service_s;
  ++stats_.reads;
  stats_.bytes += bytes;
  stats_.busy_s += service_s;
  return free_s_ + traits_.latency_s;
}

void EmulatedDrive::finish(double done_s) {
  const double late_s = clock_->now_s() - done_s;
  if (late_s < 0) {
    clock_->sleep_until(done_s);
  } else if (late_s > kLateS) {
    const Lock lock(mutex_);
    ++stats_.late_reads;
    stats_.late_s += late_s;
  }
}

// An address that lives as long as the files on the drive: no other drive has it meanwhile.
uint64_t EmulatedDrive::number() const { return reinterpret_cast<uintptr_t>(this); }

EmulatedDrive::Stats EmulatedDrive::stats() const {
  const Lock lock(mutex_);
  return stats_;
}

}  // namespace sluice
