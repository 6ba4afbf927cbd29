// A drive's lane: what carries parts of reads from the board (read_board.h) to one drive and keeps
// up to a depth of them in flight. Which parts, and in what order, is the board's affair; a lane is
// threads and system calls. Made by the queue, used by the board.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "io/read_queue.h"

namespace sluice {

class ReadBoard;

// Whole pages of a file on their way into memory.
struct ReadPart {
  Read* read = nullptr;
  const File* file = nullptr;  // the copy that is read
  uint64_t begin = 0;
  uint64_t needed_bytes = 0;  // of the hull: up to the end of the range
  std::span<std::byte> hull;
};

// Lanes are told apart by what they read.
struct LaneKey {
  uint64_t drive = 0;
  bool has_fd = false;  // files with a page_fd, or files that only read_pages reads
  friend bool operator==(const LaneKey&, const LaneKey&) = default;
};

class ReadLane {
 public:
  // `knows_memory`: the lane asks for registered memory (ReadBoard::memory_changed).
  ReadLane(LaneKey key, bool knows_memory) : key_(key), knows_memory_(knows_memory) {}
  virtual ~ReadLane() = default;  // stops the threads, which stop() has told to end
  ReadLane(const ReadLane&) = delete;
  ReadLane& operator=(const ReadLane&) = delete;

  // Makes a thread that sleeps look at the board again. Called with the board's lock held; never
  // blocks.
  virtual void wake() = 0;

 protected:
  void wake_sleeper() { work_.notify_one(); }  // one in ReadBoard::take_or_sleep

 private:
  friend class ReadBoard;
  const LaneKey key_;
  const bool knows_memory_;
  // The rest belongs to the board's lock.
  std::vector<ReadLine*> lines_;  // that this lane serves
  int32_t in_flight_ = 0;         // parts
  int32_t sleepers_ = 0;          // threads that have found nothing to do
  bool stopping_ = false;
  double shunned_until_s_ = 0.0;  // reads that another drive can answer stay away until then
  CondVar work_;                  // for lanes that sleep on the board
  uint64_t memory_version_ = 0;   // of the board's registered memory, as the lane knows it
};

// Threads that read with read_pages(), `depth` of them.
std::unique_ptr<ReadLane> make_thread_lane(ReadBoard& board, LaneKey key, int32_t depth);

// Whether the kernel lets this process use io_uring.
bool uring_works();
// One ring and one thread; null when the kernel refuses another ring.
std::unique_ptr<ReadLane> make_uring_lane(ReadBoard& board, LaneKey key, int32_t depth);

}  // namespace sluice
