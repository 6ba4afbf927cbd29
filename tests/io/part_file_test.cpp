// Files that come into being: nothing has the final name before it is whole, and too large a file
// is refused before a byte is written.
#include "io/part_file.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "io/temp_directory.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST(PartFile, HasItsNameOnlyAfterCommit) {
  const TempDirectory directory;
  const fs::path path = directory.path() / "f";
  auto file = PartFile::open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file.value().reserve(8).ok());
  ASSERT_TRUE(file.value().write_at(3, bytes_of("abc")).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file.value().commit().ok());
  EXPECT_EQ(content(path), std::string("\0\0\0abc\0\0", 8));
  EXPECT_FALSE(fs::exists(file.value().part_path()));
}

TEST(PartFile, KeepsWhatAnEarlierWriterLeftUntilDiscarded) {
  const TempDirectory directory;
  const fs::path path = directory.path() / "f";
  ASSERT_TRUE(PartFile::open(path).value().write_at(0, bytes_of("old")).ok());
  auto file = PartFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 3u);
  EXPECT_EQ(content(file.value().part_path()), "old");
  ASSERT_TRUE(file.value().discard().ok());
  EXPECT_EQ(file.value().size(), 0u);
  EXPECT_EQ(content(file.value().part_path()), "");
}

TEST(PartFile, MoreThanTheDriveHasIsRefusedWithTheBytesNeeded) {
  const TempDirectory directory;
  auto file = PartFile::open(directory.path() / "f");
  ASSERT_TRUE(file.ok());
  const uint64_t bytes = uint64_t{1} << 60;
  const Status status = file.value().reserve(bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kBudget);
  EXPECT_NE(status.error().what.find(std::to_string(bytes)), std::string::npos);
  EXPECT_LE(fs::file_size(file.value().part_path()), 0u);
}

TEST(PartFile, ADirectoryThatIsNotThereIsAnError) {
  const auto file = PartFile::open("/nonexistent/f");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().what.find("/nonexistent/f.part"), std::string::npos);
}

TEST(FileLock, OnlyOneHoldsItUntilItIsGone) {
  const TempDirectory directory;
  const fs::path path = directory.path() / "lock";
  {
    const auto first = FileLock::try_lock(path);
    ASSERT_TRUE(first.ok() && first.value());
    const auto second = FileLock::try_lock(path);
    ASSERT_TRUE(second.ok());
    EXPECT_FALSE(second.value());
  }
  const auto third = FileLock::try_lock(path);
  EXPECT_TRUE(third.ok() && third.value());
}

TEST(WritableDirectory, IsADirectoryAndNothingElse) {
  const TempDirectory directory;
  EXPECT_TRUE(is_writable_directory(directory.path()));
  EXPECT_FALSE(is_writable_directory(directory.path() / "absent"));
  std::ofstream(directory.path() / "file") << "x";
  EXPECT_FALSE(is_writable_directory(directory.path() / "file"));
}

}  // namespace
}  // namespace sluice
