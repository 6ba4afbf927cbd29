#include "io/read_queue.h"

#include <utility>

#include "io/read_board.h"
#include "io/read_lane.h"

namespace sluice {

struct ReadQueue::Impl {
  Impl(ReadBackend which, int32_t depth, uint64_t part_bytes)
      : backend(which), board(depth, part_bytes) {}
  ~Impl() { board.stop_lanes(); }

  std::unique_ptr<ReadLane> make_lane(LaneKey key) {
    std::unique_ptr<ReadLane> lane;
    if (backend == ReadBackend::kUring && key.has_fd) {
      lane = make_uring_lane(board, key, board.depth());
    }
    return lane ? std::move(lane) : make_thread_lane(board, key, board.depth());
  }

  void need_lanes(const File& file) {
    for (size_t i = 0; i < file.n_copies(); ++i) {
      const LaneKey key = ReadBoard::key_of(file.copy(i));
      if (!board.has_lane(key)) board.add_lane(make_lane(key));
    }
  }

  const ReadBackend backend;
  ReadBoard board;
};

Read::~Read() { CHECK(phase_ != Phase::kUnderWay); }

Result<std::unique_ptr<ReadQueue>> ReadQueue::open(const ReadQueueOptions& options) {
  const bool want_uring = options.backend != ReadBackend::kThreads;
  const bool has_uring = want_uring && uring_works();
  if (options.backend == ReadBackend::kUring && !has_uring) {
    return Error{Code::kUnsupported,
                 "io_uring is refused by this system or missing from this build: let the reads go "
                 "through threads"};
  }
  const ReadBackend backend = has_uring ? ReadBackend::kUring : ReadBackend::kThreads;
  const int32_t depth = options.depth > 0 ? options.depth : kDepthDefault;
  const uint64_t part_bytes = options.part_bytes > 0 ? options.part_bytes : kPartBytesDefault;
  return std::unique_ptr<ReadQueue>(
      new ReadQueue(std::make_unique<Impl>(backend, depth, round_up(part_bytes, kPageBytes))));
}

ReadQueue::ReadQueue(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ReadQueue::~ReadQueue() = default;

void ReadQueue::add_memory(std::span<std::byte> memory) { impl_->board.add_memory(memory); }
void ReadQueue::forget_memory(std::span<std::byte> memory) { impl_->board.forget_memory(memory); }

void ReadQueue::submit(Read& read, const ReadRange& range, ReadClass urgency) {
  CHECK(range.file != nullptr);
  impl_->need_lanes(*range.file);
  impl_->board.submit(read, range, urgency);
}
void ReadQueue::raise(Read& read, ReadClass urgency) { impl_->board.raise(read, urgency); }
bool ReadQueue::done(const Read& read) const { return read.phase_ == Read::Phase::kDone; }
Status ReadQueue::wait(Read& read) { return impl_->board.wait(read); }
size_t ReadQueue::wait_any(std::span<Read* const> reads) { return impl_->board.wait_any(reads); }
void ReadQueue::cancel(Read& read) { impl_->board.cancel(read); }
void ReadQueue::set_owed(bool owed) { impl_->board.set_owed(owed); }
ReadQueue::Stats ReadQueue::stats() const { return impl_->board.stats(); }
ReadBackend ReadQueue::backend() const { return impl_->backend; }
int32_t ReadQueue::depth() const { return impl_->board.depth(); }

}  // namespace sluice
