// sluice convert as scripts use it: kill -9 at any point, a full drive, two at once; and the runs
// that use what it made.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include <sys/mount.h>

#include "app/cli.h"
#include "io/part_file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPack = "spine-int8.v1.pack";

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<std::string> convert_into(const fs::path& directory) {
  return {"convert", tiny_path(), "--spine", "int8", "--work-dir", directory, "--threads", "1"};
}

class Convert : public testing::Test {
 protected:
  const fs::path& work() const { return directory_.path(); }
  fs::path pack() const { return work() / kPack; }
  void convert() {
    const ProcessResult result = cli(convert_into(work()));
    ASSERT_EQ(result.exit_status, 0) << result.err;
  }
  TempDirectory directory_;
};

TEST_F(Convert, PrintsTheSizeBeforehandAndWritesJustThat) {
  const ProcessResult result = cli(convert_into(work()));
  EXPECT_EQ(result.exit_status, 0) << result.err;
  const std::string bytes = std::to_string(fs::file_size(pack()));
  EXPECT_NE(result.out.find(pack().string()), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" " + bytes + " bytes"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("writing: 100 %"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\r'), std::string::npos);  // no bar where there is no terminal
}

TEST_F(Convert, ACompletePackIsLeftAloneAndSaidSo) {
  convert();
  const auto time = fs::last_write_time(pack());
  const ProcessResult again = cli(convert_into(work()));
  EXPECT_EQ(again.exit_status, 0);
  EXPECT_NE(again.out.find("complete already"), std::string::npos) << again.out;
  EXPECT_EQ(fs::last_write_time(pack()), time);
}

TEST_F(Convert, KilledAtAnyPointItGoesOnToTheSameBytes) {
  convert();
  const std::string whole = file_text(pack());
  std::mt19937 random(7);
  int killed = 0, kept = 0;
  for (int round = 0; round < 12; ++round) {
    const TempDirectory other;
    for (int kill = 0; kill < 2; ++kill) {
      ProcessOptions options;
      options.on_started = [&](pid_t pid) {
        std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 60000));
        ::kill(pid, SIGKILL);
      };
      killed += cli(convert_into(other.path()), options).signal == SIGKILL ? 1 : 0;
    }
    const ProcessResult last = cli(convert_into(other.path()));
    ASSERT_EQ(last.exit_status, 0) << last.err;
    kept += last.err.find("an earlier run left") != std::string::npos ? 1 : 0;
    EXPECT_TRUE(file_text(other.path() / kPack) == whole);
    EXPECT_FALSE(fs::exists(other.path() / (std::string(kPack) + ".part")));
  }
  EXPECT_GT(killed, 0);
  RecordProperty("kept", kept);
}

TEST_F(Convert, CtrlCStopsItAndTheNextRunGoesOn) {
  const ProcessResult whole = cli(convert_into(work()));
  ASSERT_EQ(whole.exit_status, 0);
  const TempDirectory other;
  ProcessOptions options;
  options.on_first_output = [](pid_t pid) { ::kill(pid, SIGINT); };  // the size was printed
  const ProcessResult stopped = cli(convert_into(other.path()), options);
  // It may have been done already, or not yet have taken over the signal.
  EXPECT_TRUE(stopped.exit_status == 130 || stopped.exit_status == 0 || stopped.signal == SIGINT);
  EXPECT_EQ(cli(convert_into(other.path())).exit_status, 0);
  EXPECT_TRUE(file_text(other.path() / kPack) == file_text(pack()));
}

TEST_F(Convert, ASecondOneSaysThatTheFirstIsAtWork) {
  const auto lock = FileLock::try_lock(pack().string() + ".lock");
  ASSERT_TRUE(lock.ok() && lock.value());
  const ProcessResult second = cli(convert_into(work()));
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_NE(second.err.find("another sluice convert"), std::string::npos) << second.err;
  EXPECT_FALSE(fs::exists(pack()));
}

TEST_F(Convert, AFileSizeLimitLeavesNoPackThatLooksWhole) {
  std::string command = "trap '' XFSZ; ulimit -f 2048; exec " + std::string(SLUICE_BINARY);
  for (const std::string& argument : convert_into(work())) command += " '" + argument + "'";
  const ProcessResult result = run_process({"/bin/sh", "-c", command});
  EXPECT_EQ(result.exit_status, 1) << result.err;
  EXPECT_NE(result.err.find(kPack), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(pack()));
  EXPECT_EQ(cli({"run", "--ids", "5", "--spine", "int8", "--work-dir", work()}).exit_status, 1);
  EXPECT_EQ(cli(convert_into(work())).exit_status, 0);  // with room it goes on
  EXPECT_TRUE(fs::exists(pack()));
}

TEST_F(Convert, AFullDriveIsRefusedBeforehandWithTheBytesNeeded) {
  if (::mount("sluice-test", work().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "may not mount a small file system";
  }
  const ProcessResult result = cli(convert_into(work()));
  const bool exists = fs::exists(pack());
  ::umount2(work().c_str(), MNT_DETACH);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.err.find(" bytes ("), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--work-dir"), std::string::npos) << result.err;
  EXPECT_FALSE(exists);
}

TEST_F(Convert, ADirectoryThatCannotBeMadeIsAnError) {
  const fs::path file = work() / "file";
  std::ofstream(file) << "x";
  const ProcessResult result = cli(convert_into(file));
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.err.find(file.string()), std::string::npos) << result.err;
}

TEST_F(Convert, OnlyInt8IsMade) {
  EXPECT_EQ(cli({"convert", "--spine", "bf16"}).exit_status, 2);
  EXPECT_EQ(cli({"convert", "--work-dir", ""}).exit_status, 2);
}

TEST_F(Convert, AnInt8RunGivesTheInt8GoldensAndSaysWhatItIs) {
  convert();
  for (const char* name : {"raw_france", "chat_italy", "raw_unicode"}) {
    const Json want = golden(name);
    std::string ids;
    for (const Json& id : want["ids"]) ids += id.dump() + ",";
    const std::string max_new = std::to_string(want["int8"]["greedy"].size());
    const Json got = only_object(cli({"run", "--ids", ids, "--max-new", max_new, "--json",
                                      "--spine", "int8", "--work-dir", work()}));
    EXPECT_EQ(got["ids"], want["int8"]["greedy"]) << name;
    EXPECT_EQ(got["stats"]["spine"], "int8 (quantised)");
  }
  const ProcessResult people =
      cli({"run", "--ids", "5", "--max-new", "1", "--spine", "int8", "--work-dir", work()});
  EXPECT_NE(people.err.find("sluice: spine int8 (quantised)"), std::string::npos) << people.err;
}

TEST_F(Convert, WithoutAPackInt8IsAnErrorThatSaysHowToMakeOne) {
  const ProcessResult result = cli({"run", "--ids", "5", "--spine", "int8", "--work-dir", work()});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.err.find("sluice convert"), std::string::npos) << result.err;
}

TEST_F(Convert, ADamagedPackIsRefusedUntilConvertMendsIt) {
  convert();
  const std::string whole = file_text(pack());
  std::string damaged = whole;
  damaged[5000] ^= 1;  // in the first layer's first matrix
  std::ofstream(pack(), std::ios::binary) << damaged;
  const std::vector<std::string> run = {"run",     "--ids", "5",          "--max-new", "1",
                                        "--spine", "int8",  "--work-dir", work()};
  const ProcessResult refused = cli(run);
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_NE(refused.err.find("run sluice convert"), std::string::npos) << refused.err;
  const ProcessResult mended = cli(convert_into(work()));
  EXPECT_EQ(mended.exit_status, 0);
  EXPECT_NE(mended.err.find("written again"), std::string::npos) << mended.err;
  EXPECT_TRUE(file_text(pack()) == whole);
  EXPECT_EQ(cli(run).exit_status, 0);
}

}  // namespace
}  // namespace sluice
