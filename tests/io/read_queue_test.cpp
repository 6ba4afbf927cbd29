// Reads in flight: bytes, order, faults, cancellation and the account, over every backend.
#include "io/read_queue.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "io/temp_directory.h"
#include "io/test_files.h"

namespace sluice {
namespace {

using testing::Gate;
using testing::MemoryFile;
using testing::PageRead;
using testing::pattern;

constexpr uint64_t kPart = 4 * kPageBytes;

FilePtr disk_file(const TempDirectory& directory, const std::string& name, std::string_view bytes,
                  Direct direct = Direct::kAuto) {
  const std::filesystem::path path = directory.path() / name;
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  Result<FilePtr> file = File::open(path, direct);
  CHECK(file.ok());
  return std::move(file).value();
}

std::unique_ptr<ReadQueue> open_queue(const ReadQueueOptions& options) {
  auto queue = ReadQueue::open(options);
  CHECK(queue.ok());
  return std::move(queue).value();
}

// A read with a slot of its own.
struct Fetch {
  Fetch(const File& file, uint64_t offset, uint64_t bytes)
      : slot(slot_bytes(bytes)), range{&file, offset, bytes, slot.bytes()} {}
  std::string_view got() const {
    return {reinterpret_cast<const char*>(slot.data()) + range.offset % kPageBytes,
            static_cast<size_t>(range.bytes)};
  }
  AlignedBuffer slot;
  ReadRange range;
  Read read;
};

class ReadQueueTest : public ::testing::TestWithParam<ReadBackend> {
 protected:
  std::unique_ptr<ReadQueue> queue(int32_t depth = 4) {
    return open_queue({.backend = GetParam(), .depth = depth, .part_bytes = kPart});
  }
};

TEST_P(ReadQueueTest, GivesTheBytesOfEveryOffsetAndLength) {
  const TempDirectory directory;
  const std::string content = pattern(11 * kPart + 1234);
  const auto reads = queue();
  for (const Direct direct : {Direct::kAuto, Direct::kOff}) {
    const FilePtr file = disk_file(directory, "f", content, direct);
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, kPart - 1, kPart, 3 * kPart + 77}) {
      for (const uint64_t bytes :
           {uint64_t{0}, uint64_t{1}, uint64_t{4096}, kPart, 3 * kPart + 5, 7 * kPart,
            content.size() - offset}) {
        Fetch fetch(*file, offset, bytes);
        reads->submit(fetch.read, fetch.range, ReadClass::kDemand);
        const Status status = reads->wait(fetch.read);
        ASSERT_TRUE(status.ok()) << status.error().what;
        ASSERT_EQ(fetch.got(), std::string_view(content).substr(offset, bytes)) << offset;
      }
    }
  }
}

TEST_P(ReadQueueTest, ManyReadsOverSeveralDrivesAllArrive) {
  const TempDirectory directory;
  const auto reads = queue();
  std::vector<std::string> contents;
  std::vector<FilePtr> files;
  for (uint32_t i = 0; i < 3; ++i) {
    contents.push_back(pattern(40 * kPart + 100 * i, i + 1));
    files.push_back(std::make_unique<MemoryFile>("memory", contents.back(), i));
  }
  contents.push_back(pattern(40 * kPart, 9));
  files.push_back(disk_file(directory, "f", contents.back()));
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Fetch>> fetches;
  std::vector<size_t> sources;
  for (int i = 0; i < 200; ++i) {
    sources.push_back(random() % files.size());
    const uint64_t offset = random() % (30 * kPart);
    const uint64_t bytes = 1 + random() % (9 * kPart);
    fetches.push_back(std::make_unique<Fetch>(*files[sources.back()], offset, bytes));
    reads->submit(fetches.back()->read, fetches.back()->range,
                  static_cast<ReadClass>(random() % kReadClasses));
  }
  for (size_t i = fetches.size(); i-- > 0;) {
    ASSERT_TRUE(reads->wait(fetches[i]->read).ok());
    EXPECT_EQ(fetches[i]->got(), std::string_view(contents[sources[i]])
                                     .substr(fetches[i]->range.offset, fetches[i]->range.bytes));
  }
}

TEST_P(ReadQueueTest, AnUrgentClassGoesFirstAndWithinAClassTheOldest) {
  const auto reads = queue(/*depth=*/1);
  Gate gate;
  const MemoryFile file("f", pattern(64 * kPart), 1,
                        [&](const PageRead& read) { return gate.pass(read); });
  std::vector<std::unique_ptr<Fetch>> fetches;
  const auto submit = [&](uint64_t part, ReadClass urgency) -> Read& {
    fetches.push_back(std::make_unique<Fetch>(file, part * kPart, kPart));
    reads->submit(fetches.back()->read, fetches.back()->range, urgency);
    return fetches.back()->read;
  };
  submit(0, ReadClass::kHint);
  gate.wait_for(1);  // the only place is taken: all others stand in line
  submit(1, ReadClass::kHint);
  submit(2, ReadClass::kSpine);
  submit(3, ReadClass::kDemand);
  Read& raised = submit(4, ReadClass::kHint);
  submit(5, ReadClass::kSpine);
  submit(6, ReadClass::kDemand);
  submit(7, ReadClass::kHint);
  reads->raise(raised, ReadClass::kSpine);
  reads->raise(fetches[6]->read, ReadClass::kHint);  // is more urgent already
  gate.open();
  for (const auto& fetch : fetches) EXPECT_TRUE(reads->wait(fetch->read).ok());
  std::vector<uint64_t> order;
  for (const uint64_t begin : gate.begun()) order.push_back(begin / kPart);
  // wait() raises in the order of the calls, which the two demand reads precede.
  ASSERT_EQ(order.size(), 8u);
  EXPECT_EQ(order[0], 0u);
  EXPECT_LT(std::find(order.begin(), order.end(), 3u), std::find(order.begin(), order.end(), 6u));
}

TEST_P(ReadQueueTest, ABeyondTheEndRangeIsAnErrorOfWait) {
  const auto reads = queue();
  const MemoryFile file("short.bin", pattern(5000), 1);
  Fetch fetch(file, 4000, 1001);
  reads->submit(fetch.read, fetch.range, ReadClass::kDemand);
  const Status status = reads->wait(fetch.read);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kCorrupt);
  std::atomic<uint64_t> ignored = 0;
  EXPECT_EQ(status.error().what,
            file.read_direct(4000, 1001, fetch.slot.bytes(), ignored).error().what);
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadQueueTest,
                         ::testing::Values(ReadBackend::kThreads),
                         [](const auto& info) {
                           return info.param == ReadBackend::kUring ? "Uring" : "Threads";
                         });

}  // namespace
}  // namespace sluice
