// A lane of threads, each with one blocking read at a time: for systems without io_uring and for
// files that only read_pages() reads. Thread-safe.
#include <thread>

#include <pthread.h>

#include "io/read_board.h"
#include "io/read_lane.h"

namespace sluice {
namespace {

class ThreadLane final : public ReadLane {
 public:
  ThreadLane(ReadBoard& board, LaneKey key, int32_t depth)
      : ReadLane(key, /*knows_memory=*/false), board_(board) {
    threads_.reserve(static_cast<size_t>(depth));
    for (int32_t i = 0; i < depth; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~ThreadLane() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void wake() override { wake_sleeper(); }

 private:
  void serve() {
    pthread_setname_np(pthread_self(), "sluice-read");
    while (const std::optional<ReadPart> part = board_.take_or_sleep(*this)) {
      board_.finish(*this, *part, board_.read_pages(*this, *part));
    }
  }

  ReadBoard& board_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ReadLane> make_thread_lane(ReadBoard& board, LaneKey key, int32_t depth) {
  return std::make_unique<ThreadLane>(board, key, depth);
}

}  // namespace sluice
