// A drive that does not exist: when each read would be done on a drive of a given rate and latency.
// Reads are served one after the other at the full rate, in the order they come, and each is done
// one latency after its last byte: so one read at a time is slow and several hide the latency, as
// on a real drive. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/mutex.h"

namespace sluice {

struct DriveTraits {
  uint64_t bytes_s = 0;      // above 0
  double latency_s = 80e-6;  // of a good NVMe drive
};

// Time, so that tests need not wait for it.
class DriveClock {
 public:
  virtual ~DriveClock() = default;
  virtual double now_s() = 0;
  virtual void sleep_until(double time_s) = 0;
  static std::shared_ptr<DriveClock> steady();  // the machine's own
};

class EmulatedDrive {
 public:
  EmulatedDrive(const DriveTraits& traits, std::shared_ptr<DriveClock> clock);

  // A read of `bytes` begins; the result is when the drive has done it.
  double begin(uint64_t bytes);
  // Waits until `done_s`. The bytes must be there: if they came later than the drive would have
  // been, that is counted.
  void finish(double done_s);

  uint64_t number() const;  // for File::drive()

  struct Stats {
    uint64_t reads = 0;
    uint64_t bytes = 0;
    double busy_s = 0.0;      // of the drive's own time
    uint64_t late_reads = 0;  // whose bytes were made later than the drive would have read them
    double late_s = 0.0;      // by how much, added up: large ones make a measurement worthless
  };
  Stats stats() const;

 private:
  const DriveTraits traits_;
  const std::shared_ptr<DriveClock> clock_;
  mutable Mutex mutex_;
  double free_s_ GUARDED_BY(mutex_) = 0.0;  // when it has served all that has begun
  Stats stats_ GUARDED_BY(mutex_);
};

}  // namespace sluice
