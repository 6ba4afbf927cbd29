// What is read of which file: an opener of files that notes the ranges while it is told to, for
// measurements that read the same bytes again. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "io/file.h"

namespace sluice {

struct LoggedRead {
  const File* file = nullptr;  // as the inner opener made it; lives as long as the log's files
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class ReadLog : public std::enable_shared_from_this<ReadLog> {
 public:
  static std::shared_ptr<ReadLog> make() { return std::shared_ptr<ReadLog>(new ReadLog()); }

  // Files opened by `inner`, which pass on everything. While notes are taken they hide their
  // descriptor and copies, so that every read of pages is seen.
  OpenFile wrap(OpenFile inner);

  void start() { noting_ = true; }
  // What was read since start(), in the order it was asked for.
  std::vector<LoggedRead> stop();

 private:
  friend class LoggedFile;
  ReadLog() = default;
  void note(const LoggedRead& read);

  std::atomic<bool> noting_{false};
  Mutex mutex_;
  std::vector<LoggedRead> reads_ GUARDED_BY(mutex_);
};

}  // namespace sluice
