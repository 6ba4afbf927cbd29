#include "io/raw_reads.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<RawReads>> RawReads::open(const ReadQueueOptions& options,
                                                 uint64_t range_bytes_max, uint64_t window_bytes) {
  TRY(auto queue, ReadQueue::open(options));
  const uint64_t n_slots = std::max<uint64_t>(1, window_bytes / slot_bytes(range_bytes_max));
  return std::unique_ptr<RawReads>(new RawReads(std::move(queue), range_bytes_max, n_slots));
}

RawReads::RawReads(std::unique_ptr<ReadQueue> queue, uint64_t range_bytes_max, size_t n_slots)
    : queue_(std::move(queue)),
      slot_bytes_(slot_bytes(range_bytes_max)),
      memory_(slot_bytes_ * n_slots),
      reads_(n_slots) {
  queue_->add_memory(memory_.bytes());
}

RawReads::~RawReads() {
  for (Read& read : reads_) queue_->cancel(read);
  queue_->forget_memory(memory_.bytes());
}

Result<RawReads::Times> RawReads::run(std::span<const LoggedRead> reads) {
  for (Read& read : reads_) queue_->cancel(read);  // what an error left
  Times times;
  const auto begin = Clock::now();
  for (size_t i = 0; i < reads.size() + reads_.size(); ++i) {
    Read& read = reads_[i % reads_.size()];
    if (i >= reads_.size() && i - reads_.size() < reads.size()) TRY_OK(queue_->wait(read));
    if (i >= reads.size()) continue;
    const LoggedRead& range = reads[i];
    CHECK(slot_bytes(range.bytes) <= slot_bytes_);
    queue_->submit(read,
                   {.file = range.file,
                    .offset = range.offset,
                    .bytes = range.bytes,
                    .slot = memory_.bytes().subspan(i % reads_.size() * slot_bytes_, slot_bytes_)},
                   ReadClass::kDemand);
    times.bytes += range.bytes;
  }
  times.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return times;
}

}  // namespace sluice
