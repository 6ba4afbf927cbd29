// Reads in flight: ranges of files on their way into memory, by class of urgency, kept at a drive's
// best depth. One I/O thread a drive (io_uring, or a pool of pread threads where there is none).
// Thread-safe, but one Read is used by one thread at a time. Steady use allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "io/file.h"

namespace sluice {

// A class is served when no more urgent one has anything to issue; within a class the first
// submitted comes first.
enum class ReadClass : uint8_t { kDemand, kSpine, kHint };
constexpr size_t kReadClasses = 3;

// What to read and where to: `slot` as File::read_direct wants it.
struct ReadRange {
  const File* file = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::span<std::byte> slot;
};

class ReadQueue;
struct ReadLine;

// One range under way. Its owner keeps it (and the slot) in place from submit() until wait() or
// cancel() has returned; then it may be submitted again.
class Read {
 public:
  Read() = default;
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;
  ~Read();  // CHECKs that nothing is under way

 private:
  friend class ReadBoard;
  friend class ReadQueue;
  enum class Phase : uint8_t { kIdle, kUnderWay, kDone };
  std::atomic<Phase> phase_{Phase::kIdle};
  // All below belongs to the board while the read is under way.
  ReadRange range_;
  ReadClass class_ = ReadClass::kDemand;
  uint64_t part_bytes_ = 0;      // of every part but the last
  uint64_t issued_bytes_ = 0;    // of the hull (the pages that the range touches)
  int32_t parts_in_flight_ = 0;  // issued and not answered
  std::optional<Error> error_;
  uint64_t ticket_ = 0;       // rises with every submit
  ReadLine* line_ = nullptr;  // that it stands in, or null: all is issued
  Read* next_ = nullptr;      // in the line of its class
  Read* previous_ = nullptr;
};

constexpr int32_t kDepthDefault = 16;
constexpr uint64_t kPartBytesDefault = uint64_t{4} << 20;

enum class ReadBackend { kAuto, kUring, kThreads };

struct ReadQueueOptions {
  ReadBackend backend = ReadBackend::kAuto;  // kAuto: io_uring where the kernel lets us
  int32_t depth = 0;                         // parts in flight a drive; 0: kDepthDefault
  uint64_t part_bytes = 0;  // a read is split into equal parts of at most these; 0: the default
};

class ReadQueue {
 public:
  // kUnsupported when io_uring is asked for by name and refused by the kernel.
  static Result<std::unique_ptr<ReadQueue>> open(const ReadQueueOptions& options);
  ~ReadQueue();  // CHECKs that nothing is under way

  // Registers memory that slots will lie in, for faster reads where the backend can; a hint. The
  // system then holds on to its pages: give none of them back (munmap, MADV_DONTNEED) before
  // forget_memory() of it, which waits until no drive knows it.
  void add_memory(std::span<std::byte> memory);
  void forget_memory(std::span<std::byte> memory);

  // Puts the range in line; returns at once. A range beyond the file's end becomes an error of
  // wait().
  void submit(Read& read, const ReadRange& range, ReadClass urgency);
  // Moves what is not yet issued to a more urgent class; nothing when it is there already.
  void raise(Read& read, ReadClass urgency);
  bool done(const Read& read) const;
  // Blocks until all bytes are there, as kDemand. A failed part is tried once more before it counts
  // (a drive may recover by itself). Errors as File::read_direct.
  Status wait(Read& read);
  // Blocks until one of `reads` is done and gives its index; each must be under way or done.
  size_t wait_any(std::span<Read* const> reads);
  // Drops what is not yet issued and waits for what is. Also right for a read that is idle.
  void cancel(Read& read);

  // Tells whether bytes are owed that are not in line because no memory is free for them: time with
  // too few reads in flight then counts as short.
  void set_owed(bool owed);

  struct Stats {
    uint64_t bytes_read = 0;  // aligned bytes asked of the drives, retries included
    uint64_t parts = 0;       // reads of the drives
    uint64_t retries = 0;
    std::array<uint64_t, kReadClasses> class_bytes{};  // bytes_read by class at issue
    double owed_s = 0.0;                               // time with reads under way, or bytes owed
    double short_s = 0.0;  // of it with fewer parts in flight on a drive than the depth, while
                           // parts for it are in line or bytes are owed
  };
  Stats stats() const;
  ReadBackend backend() const;  // which it got
  int32_t depth() const;

 private:
  struct Impl;
  explicit ReadQueue(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
