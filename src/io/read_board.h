// The one place where reads stand in line: lines by drive and class, what is in flight on which
// lane, who waits, and the account of time. Thread-safe; one lock, held for no system call that
// blocks. Nothing here allocates but the first read of a drive.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "io/read_lane.h"
#include "io/read_queue.h"

namespace sluice {

// Reads with parts to issue, oldest first in each class. Served by one lane, or, for files with
// copies on several drives, by the lane of each copy: whichever has room takes the next part.
struct ReadLine {
  struct Class {
    Read* first = nullptr;
    Read* last = nullptr;
  };
  std::array<Class, kReadClasses> classes;
  std::vector<ReadLane*> lanes;  // [copies of the file]

  bool empty() const;
};

class ReadBoard {
 public:
  ReadBoard(int32_t depth, uint64_t part_bytes);
  ~ReadBoard();  // CHECKs that nothing is under way
  ReadBoard(const ReadBoard&) = delete;
  ReadBoard& operator=(const ReadBoard&) = delete;

  int32_t depth() const { return depth_; }

  // What the queue's users ask for; see read_queue.h. The file's lanes must exist.
  void submit(Read& read, const ReadRange& range, ReadClass urgency);
  void raise(Read& read, ReadClass urgency);
  Status wait(Read& read);
  size_t wait_any(std::span<Read* const> reads);
  void cancel(Read& read);
  void set_owed(bool owed);
  ReadQueue::Stats stats();
  void add_memory(std::span<std::byte> memory);
  void forget_memory(std::span<std::byte> memory);

  // What the queue does with lanes.
  static LaneKey key_of(const File& file);
  bool has_lane(LaneKey key);
  // Gives the lane back, told to stop, when another came first.
  std::unique_ptr<ReadLane> add_lane(std::unique_ptr<ReadLane> lane);
  void stop_lanes();  // nothing may be under way

  // What a lane's threads do. take() gives the next part for the lane; without one it returns
  // nothing at once, and the lane is woken when that changes. take_or_sleep() waits, and returns
  // nothing when the lane is to stop.
  std::optional<ReadPart> take(ReadLane& lane);
  std::optional<ReadPart> take_or_sleep(ReadLane& lane);
  bool stopping(ReadLane& lane);
  // Reads by read_pages on the calling thread, again from each other copy of the file (or once
  // more from the only one) when that fails. `tried`: the first try has failed with this.
  Status read_pages(ReadLane& lane, const ReadPart& part, std::optional<Error> tried = {});
  void finish(ReadLane& lane, const ReadPart& part, Status status);
  // The registered memory and its version when it has changed since memory_known(): the places of
  // known memory are kept, empty spans are holes. memory_known() says that the lane goes by it.
  std::optional<uint64_t> memory_changed(ReadLane& lane, std::vector<std::span<std::byte>>& memory);
  void memory_known(ReadLane& lane, uint64_t version);

 private:
  ReadLine& line_of(const File& file) REQUIRES(mutex_);
  ReadLane* find_lane(LaneKey key) REQUIRES(mutex_);
  void insert(Read& read) REQUIRES(mutex_);
  void unlink(Read& read) REQUIRES(mutex_);
  void wake(ReadLine& line) REQUIRES(mutex_);
  void raise_locked(Read& read, ReadClass urgency) REQUIRES(mutex_);
  std::optional<ReadPart> take_locked(ReadLane& lane) REQUIRES(mutex_);
  Read* next_read(const ReadLane& lane) REQUIRES(mutex_);
  bool may_serve(const ReadLane& lane, const ReadLine& line) REQUIRES(mutex_);
  double now_s() const;
  void settle() REQUIRES(mutex_);
  bool is_short() REQUIRES(mutex_);
  void count_part(const ReadPart& part) REQUIRES(mutex_);
  void end(Read& read) REQUIRES(mutex_);
  static void tell_to_stop(ReadLane& lane);

  const int32_t depth_;
  const uint64_t part_bytes_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  Mutex mutex_;
  CondVar done_;  // a read is done, or a lane has let go of memory
  std::vector<std::unique_ptr<ReadLane>> lanes_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ReadLine>> lines_ GUARDED_BY(mutex_);
  std::vector<std::span<std::byte>> memory_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> memory_version_ = 0;  // changed with the lock held
  uint64_t tickets_ GUARDED_BY(mutex_) = 0;
  int64_t under_way_ GUARDED_BY(mutex_) = 0;
  bool owed_ GUARDED_BY(mutex_) = false;
  double settled_s_ GUARDED_BY(mutex_) = 0.0;
  ReadQueue::Stats stats_ GUARDED_BY(mutex_);
};

}  // namespace sluice
