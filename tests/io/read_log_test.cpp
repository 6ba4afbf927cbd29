// The log of reads, and the reader that reads the same again.
#include "io/read_log.h"

#include <gtest/gtest.h>

#include <array>

#include "base/aligned_buffer.h"
#include "io/raw_reads.h"
#include "test_files.h"

namespace sluice {
namespace {

using testing::MemoryFile;
using testing::pattern;

struct Fixture {
  std::shared_ptr<ReadLog> log = ReadLog::make();
  int reads = 0;  // of the inner file
  FilePtr file;

  Fixture() {
    const OpenFile open = log->wrap([this](const std::filesystem::path& path,
                                           Direct) -> Result<FilePtr> {
      return FilePtr(std::make_unique<MemoryFile>(path.string(), pattern(100'000), 1,
                                                  [this](const testing::PageRead&) {
                                                    ++reads;
                                                    return std::optional<int>();
                                                  }));
    });
    file = open("shard", Direct::kAuto).value();
  }
  void read(uint64_t offset, uint64_t bytes) {
    AlignedBuffer slot(slot_bytes(bytes));
    std::atomic<uint64_t> counted{0};
    const auto got = file->read_direct(offset, bytes, slot.bytes(), counted);
    ASSERT_TRUE(got.ok());
    const std::string whole = pattern(100'000);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(got.value().data()), got.value().size()),
              whole.substr(offset, bytes));
  }
};

TEST(ReadLog, NotesReadsOnlyBetweenStartAndStop) {
  Fixture f;
  f.read(0, 10);
  f.log->start();
  f.read(5000, 100);
  f.read(70'000, 9000);
  const std::vector<LoggedRead> reads = f.log->stop();
  f.read(0, 10);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_EQ(reads[0].offset, 4096u);
  EXPECT_EQ(reads[0].bytes, 904u + 100u);
  EXPECT_EQ(reads[1].offset, 69'632u);
  EXPECT_EQ(f.reads, 4);
  EXPECT_TRUE(f.log->stop().empty());
}

TEST(RawReads, ReadEveryRangeOnceWithAnyWindow) {
  Fixture f;
  f.log->start();
  for (uint64_t i = 0; i < 20; ++i) f.read(i * 4096, 4096);
  const std::vector<LoggedRead> reads = f.log->stop();
  for (const uint64_t window : {uint64_t{1}, uint64_t{30'000}, uint64_t{1'000'000}}) {
    f.reads = 0;
    const auto raw = RawReads::open({.backend = ReadBackend::kThreads, .depth = 1}, 4096, window);
    ASSERT_TRUE(raw.ok());
    const auto times = raw.value()->run(reads);
    ASSERT_TRUE(times.ok());
    EXPECT_EQ(times.value().bytes, 20u * 4096u);
    EXPECT_EQ(f.reads, 20);
    EXPECT_GT(times.value().seconds, 0);
    // And again: the slots are free.
    ASSERT_TRUE(raw.value()->run(reads).ok());
    EXPECT_EQ(f.reads, 40);
  }
}

TEST(RawReads, AFailedReadIsAnErrorAndTheNextRunWorks) {
  bool failing = true;
  MemoryFile file("shard", pattern(50'000), 1, [&failing](const testing::PageRead& read) {
    return failing && read.begin == 8192 ? std::optional<int>(5) : std::nullopt;
  });
  const std::vector<LoggedRead> reads = {{&file, 0, 4096}, {&file, 8192, 4096}, {&file, 4096, 4096}};
  const auto raw = RawReads::open({.backend = ReadBackend::kThreads}, 4096, 1'000'000);
  ASSERT_TRUE(raw.ok());
  EXPECT_FALSE(raw.value()->run(reads).ok());
  failing = false;
  EXPECT_TRUE(raw.value()->run(reads).ok());
}

}  // namespace
}  // namespace sluice
