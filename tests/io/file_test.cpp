// Exact reads at any offset, through the page cache and around it.
#include "io/file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/temp_directory.h"

namespace sluice {
namespace {

std::string pattern(size_t bytes) {
  std::string text(bytes, '\0');
  uint32_t state = 1;
  for (char& c : text) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

std::filesystem::path write_file(const TempDirectory& directory, const std::string& name,
                                 std::string_view bytes) {
  const std::filesystem::path path = directory.path() / name;
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

FilePtr open_file(const std::filesystem::path& path, Direct direct) {
  Result<FilePtr> file = File::open(path, direct);
  CHECK(file.ok());
  return std::move(file).value();
}

bool same(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() == text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

TEST(File, DirectReadsGiveTheBytesOfEveryOffsetAndLength) {
  const TempDirectory directory;
  const std::string content = pattern(3 * kPageBytes + 1234);
  const FilePtr file = open_file(write_file(directory, "f", content), Direct::kAuto);
  const AlignedBuffer slot(slot_bytes(content.size()));
  std::atomic<uint64_t> bytes_read = 0;
  for (uint64_t offset = 0; offset <= 8192; offset += 13) {
    const uint64_t to_end = content.size() - offset;
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4096},
                                 uint64_t{4097}, to_end - 1, to_end}) {
      const auto got = file->read_direct(offset, bytes, slot.bytes(), bytes_read);
      ASSERT_TRUE(got.ok()) << got.error().what;
      ASSERT_TRUE(same(got.value(), std::string_view(content).substr(offset, bytes)))
          << offset << " " << bytes;
      std::vector<std::byte> buffered(bytes);
      ASSERT_TRUE(file->read_at(offset, buffered).ok());
      ASSERT_TRUE(std::equal(buffered.begin(), buffered.end(), got.value().begin()));
    }
  }
}

TEST(File, ASlotHoldsItsRangeAtTheOffsetWithinThePage) {
  const TempDirectory directory;
  const FilePtr file = open_file(write_file(directory, "f", pattern(20000)), Direct::kAuto);
  const AlignedBuffer slot(slot_bytes(100));
  std::atomic<uint64_t> bytes_read = 0;
  const auto got = file->read_direct(4096 + 4090, 100, slot.bytes(), bytes_read);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().data() - slot.data(), 4090);
  EXPECT_EQ(bytes_read.load(), 8192u);  // the two pages that the range touches
  ASSERT_TRUE(file->read_direct(0, 4096, slot.bytes(), bytes_read).ok());
  EXPECT_EQ(bytes_read.load(), 8192u + 4096u);
}

TEST(File, BufferedFilesReadTheSameBytesAndCountTheSame) {
  const TempDirectory directory;
  const std::string content = pattern(10000);
  const FilePtr file = open_file(write_file(directory, "f", content), Direct::kOff);
  EXPECT_FALSE(file->direct());
  const AlignedBuffer slot(slot_bytes(9000));
  std::atomic<uint64_t> bytes_read = 0;
  const auto got = file->read_direct(999, 9000, slot.bytes(), bytes_read);
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(same(got.value(), std::string_view(content).substr(999, 9000)));
  EXPECT_EQ(bytes_read.load(), 12288u);
}

TEST(File, RangesBeyondTheEndAreCorruptAndNamed) {
  const TempDirectory directory;
  const FilePtr file = open_file(write_file(directory, "shard", pattern(5000)), Direct::kAuto);
  const AlignedBuffer slot(slot_bytes(8192));
  std::atomic<uint64_t> bytes_read = 0;
  struct Range {
    uint64_t offset, bytes;
  };
  for (const Range& range : {Range{4999, 2}, Range{5001, 0}, Range{0, 5001}, Range{UINT64_MAX, 1},
                             Range{UINT64_MAX - 4, 10}}) {
    const auto direct = file->read_direct(range.offset, range.bytes, slot.bytes(), bytes_read);
    ASSERT_FALSE(direct.ok());
    EXPECT_EQ(direct.error().code, Code::kCorrupt);
    EXPECT_NE(direct.error().what.find("shard ends at byte 5000"), std::string::npos);
    std::vector<std::byte> out(range.bytes);
    EXPECT_FALSE(file->read_at(range.offset, out).ok());
  }
  EXPECT_EQ(bytes_read.load(), 0u);
}

TEST(File, AFileThatShrankAfterOpenIsCorrupt) {
  const TempDirectory directory;
  const std::filesystem::path path = write_file(directory, "shard", pattern(50000));
  const FilePtr file = open_file(path, Direct::kAuto);
  std::filesystem::resize_file(path, 10000);
  const AlignedBuffer slot(slot_bytes(30000));
  std::atomic<uint64_t> bytes_read = 0;
  const auto direct = file->read_direct(1, 30000, slot.bytes(), bytes_read);
  ASSERT_FALSE(direct.ok());
  EXPECT_EQ(direct.error().code, Code::kCorrupt);
  std::vector<std::byte> out(30000);
  const Status buffered = file->read_at(1, out);
  ASSERT_FALSE(buffered.ok());
  EXPECT_EQ(buffered.error().code, Code::kCorrupt);
  EXPECT_TRUE(file->read_direct(0, 10000, slot.bytes(), bytes_read).ok());
}

TEST(File, OneReadOfManyCallsCrossesTwoGibibytes) {
  const TempDirectory directory;
  const std::filesystem::path path = write_file(directory, "sparse", "");
  constexpr uint64_t kMark = (uint64_t{1} << 31) - 3;
  constexpr uint64_t kBegin = kMark - (uint64_t{300} << 20) - 5;
  constexpr uint64_t kBytes = uint64_t{600} << 20;  // more than one read call may take
  std::filesystem::resize_file(path, uint64_t{3} << 30);
  {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(kMark));
    out << "middle";
    out.seekp(static_cast<std::streamoff>(kBegin + kBytes - 4));
    out << "last";
  }
  const FilePtr file = open_file(path, Direct::kAuto);
  EXPECT_EQ(file->size(), uint64_t{3} << 30);
  const AlignedBuffer slot(slot_bytes(kBytes));
  std::atomic<uint64_t> bytes_read = 0;
  const auto all = file->read_direct(kBegin, kBytes, slot.bytes(), bytes_read);
  ASSERT_TRUE(all.ok()) << all.error().what;
  EXPECT_TRUE(same(all.value().subspan(kMark - kBegin, 6), "middle"));
  EXPECT_TRUE(same(all.value().last(4), "last"));
  EXPECT_EQ(all.value().front(), std::byte{0});
  std::vector<std::byte> part(6);
  ASSERT_TRUE(file->read_at(kMark, part).ok());
  EXPECT_TRUE(same(part, "middle"));
}

TEST(File, OnlyRegularFilesAreOpened) {
  const TempDirectory directory;
  const std::filesystem::path fifo = directory.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::filesystem::path& path :
       {fifo, directory.path(), std::filesystem::path("/dev/zero"), directory.path() / "absent"}) {
    const Result<FilePtr> file = File::open(path, Direct::kAuto);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code, Code::kIo);
    EXPECT_NE(file.error().what.find(path.string()), std::string::npos) << file.error().what;
  }
}

TEST(File, ManyThreadsReadOneFile) {
  const TempDirectory directory;
  const std::string content = pattern(1 << 20);
  const FilePtr file = open_file(write_file(directory, "f", content), Direct::kAuto);
  std::atomic<uint64_t> bytes_read = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const AlignedBuffer slot(slot_bytes(5000));
      for (uint64_t offset = t; offset + 5000 < content.size(); offset += 9001) {
        const auto got = file->read_direct(offset, 5000, slot.bytes(), bytes_read);
        if (!got.ok() || !same(got.value(), std::string_view(content).substr(offset, 5000)))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(File, TextFilesAreReadWholeWithinTheirBound) {
  const TempDirectory directory;
  const std::filesystem::path path = write_file(directory, "t", std::string_view("a\0b\n", 4));
  const Result<std::string> text = read_text_file(path, 4);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), std::string_view("a\0b\n", 4));
  const Result<std::string> large = read_text_file(path, 3);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, Code::kBudget);
  const Result<std::string> absent = read_text_file(directory.path() / "none", 3);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, Code::kIo);
  EXPECT_NE(absent.error().what.find("none"), std::string::npos);
}

}  // namespace
}  // namespace sluice
