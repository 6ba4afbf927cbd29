// Reads and nothing else: how fast the drive alone delivers given ranges. One owner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "io/read_log.h"
#include "io/read_queue.h"

namespace sluice {

class RawReads {
 public:
  // `window_bytes` of memory take what is under way; at least one range of `range_bytes_max` each.
  static Result<std::unique_ptr<RawReads>> open(const ReadQueueOptions& options,
                                                uint64_t range_bytes_max, uint64_t window_bytes);
  ~RawReads();

  struct Times {
    double seconds = 0;
    uint64_t bytes = 0;
    double gb_s() const { return static_cast<double>(bytes) / 1e9 / seconds; }
  };
  // Reads all of `reads` in their order, as many at once as the window holds. Errors as
  // ReadQueue::wait.
  Result<Times> run(std::span<const LoggedRead> reads);
  ReadBackend backend() const { return queue_->backend(); }

 private:
  RawReads(std::unique_ptr<ReadQueue> queue, uint64_t range_bytes_max, size_t n_slots);
  std::unique_ptr<ReadQueue> queue_;
  uint64_t slot_bytes_ = 0;
  AlignedBuffer memory_;
  std::vector<Read> reads_;
};

}  // namespace sluice
