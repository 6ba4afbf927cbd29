// Int8 packs of the bundled checkpoint in directories of their own, for tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "format/checkpoint.h"
#include "format/fingerprint.h"
#include "format/pack_file.h"
#include "format/pack_layout.h"
#include "store/pack_writer.h"

namespace sluice {

inline PackLayout layout_of(const Checkpoint& checkpoint) {
  return plan_pack(checkpoint, fingerprint(checkpoint).value());
}

// Runs the writer with two threads; job.pool is set here.
inline Result<PackSummary> try_pack(const Checkpoint& checkpoint, PackJob job) {
  ThreadPool pool(2);
  job.pool = &pool;
  return write_pack(checkpoint, layout_of(checkpoint), job);
}

// The path of a whole pack in `directory`.
inline std::filesystem::path make_pack(const Checkpoint& checkpoint,
                                       const std::filesystem::path& directory) {
  const auto summary = try_pack(checkpoint, {.directory = directory});
  EXPECT_TRUE(summary.ok()) << (summary.ok() ? "" : summary.error().what);
  return directory / kPackName;
}

inline Result<std::unique_ptr<PackFile>> try_open_pack(const Checkpoint& checkpoint,
                                                       const std::filesystem::path& path) {
  return PackFile::open(path, layout_of(checkpoint), Direct::kAuto);
}

inline std::unique_ptr<PackFile> open_pack(const Checkpoint& checkpoint,
                                           const std::filesystem::path& path) {
  auto pack = try_open_pack(checkpoint, path);
  if (!pack.ok()) {
    ADD_FAILURE() << pack.error().what;
    std::abort();
  }
  return std::move(pack).value();
}

}  // namespace sluice
