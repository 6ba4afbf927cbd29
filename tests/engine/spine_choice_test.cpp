// Which spine an engine takes, and where its pack is looked for.
#include <fstream>

#include "base/thread_pool.h"
#include "engine/tiny_engine.h"
#include "engine/work_directory.h"
#include "format/fingerprint.h"
#include "io/temp_directory.h"
#include "store/tiny_pack.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class SpineChoiceTest : public testing::Test {
 protected:
  SpineChoiceTest() : checkpoint_(Checkpoint::open(tiny_path(), Direct::kAuto).value()) {
    options_ = tiny_options();
    options_.work_dir = directory_.path();
  }
  void make() { make_pack(checkpoint_, directory_.path()); }

  // The plan for these options; its spine and reason, or the error.
  std::string spine(SpineChoice choice, uint64_t ram_bytes) {
    options_.spine = choice;
    options_.ram_bytes = ram_bytes;
    auto plan = plan_engine(checkpoint_, options_);
    if (!plan.ok()) return plan.error().what;
    return plan.value().spine() + ": " + plan.value().spine_reason;
  }
  // Bytes that hold everything but a little of the bf16 spine.
  uint64_t tight_bytes() {
    options_.ram_bytes = uint64_t{256} << 20;
    options_.spine = SpineChoice::kBf16;
    const MemoryPlan plan = plan_engine(checkpoint_, options_).value().memory;
    return plan.floor_bytes + plan.total_bytes() / 8;
  }

  TempDirectory directory_;
  Checkpoint checkpoint_;
  EngineOptions options_;
  static constexpr uint64_t kRoomy = uint64_t{256} << 20;
};

TEST_F(SpineChoiceTest, AutoIsBf16WhileAllOfItFits) {
  EXPECT_EQ(spine(SpineChoice::kAuto, kRoomy), "bf16: auto: it fits in memory");
  make();
  EXPECT_EQ(spine(SpineChoice::kAuto, kRoomy), "bf16: auto: it fits in memory");
}

TEST_F(SpineChoiceTest, AutoIsInt8WhenBf16DoesNotFitAndThePackIsWhole) {
  const uint64_t tight = tight_bytes();
  EXPECT_TRUE(spine(SpineChoice::kAuto, tight).starts_with("bf16: auto: there is no int8 pack"));
  make();
  EXPECT_TRUE(spine(SpineChoice::kAuto, tight).starts_with("int8 (quantised): auto: "));
  fs::resize_file(directory_.path() / kPackName, 10000);
  const std::string damaged = spine(SpineChoice::kAuto, tight);
  EXPECT_TRUE(damaged.starts_with("bf16: auto: ")) << damaged;
  EXPECT_NE(damaged.find(std::string(kPackName)), std::string::npos) << damaged;
}

TEST_F(SpineChoiceTest, AutoTakesInt8WhereBf16WouldBeRefused) {
  make();
  options_.ram_bytes = 1000;
  options_.spine = SpineChoice::kBf16;
  const std::string what = plan_engine(checkpoint_, options_).error().what;
  const uint64_t floor = std::stoull(what.substr(what.find("at least ") + 9));
  EXPECT_TRUE(spine(SpineChoice::kBf16, floor - 1).starts_with("--ram"));
  EXPECT_TRUE(spine(SpineChoice::kAuto, floor - 1).starts_with("int8 (quantised)"));
}

TEST_F(SpineChoiceTest, Int8WithoutAPackSaysHowToMakeOne) {
  const std::string what = spine(SpineChoice::kInt8, kRoomy);
  EXPECT_NE(what.find("sluice convert"), std::string::npos) << what;
  EXPECT_NE(what.find((directory_.path() / kPackName).string()), std::string::npos) << what;
  make();
  EXPECT_EQ(spine(SpineChoice::kInt8, kRoomy), "int8 (quantised): as asked for");
  EXPECT_EQ(spine(SpineChoice::kBf16, kRoomy), "bf16: as asked for");
}

TEST_F(SpineChoiceTest, TheReportCountsTheSpineInItsFormat) {
  make();
  options_.spine = SpineChoice::kInt8;
  const auto int8 = make_plan_report(options_);
  options_.spine = SpineChoice::kBf16;
  const auto bf16 = make_plan_report(options_);
  ASSERT_TRUE(int8.ok() && bf16.ok());
  const auto embeddings = checkpoint_.global(Role::kEmbedTokens).bytes;
  EXPECT_LT(int8.value().spine_bytes - embeddings,
            (bf16.value().spine_bytes - embeddings) * 6 / 10);
  EXPECT_GT(int8.value().spine_bytes - embeddings, (bf16.value().spine_bytes - embeddings) / 2);
}

TEST_F(SpineChoiceTest, TheWorkDirectoryIsTheGivenOneThenBesideTheModelThenInTheCache) {
  TempDirectory snapshot, cache;
  for (const auto& entry : fs::directory_iterator(tiny_path())) {
    if (entry.is_regular_file()) {
      fs::create_symlink(entry.path(), snapshot.path() / entry.path().filename());
    }
  }
  const Checkpoint checkpoint = Checkpoint::open(snapshot.path(), Direct::kAuto).value();
  EngineOptions options;
  options.cache_home = cache.path();
  EXPECT_EQ(work_directory(checkpoint, options).value(), snapshot.path() / ".sluice");
  options.work_dir = "/somewhere";
  EXPECT_EQ(work_directory(checkpoint, options).value(), "/somewhere");
  options.work_dir.clear();
  // A file of that name stands for a directory that cannot be written: root may write everywhere.
  std::ofstream(snapshot.path() / ".sluice") << "x";
  const std::string digits = fingerprint(checkpoint).value().substr(0, 16);
  EXPECT_EQ(work_directory(checkpoint, options).value(), cache.path() / "sluice" / digits);
  options.cache_home.clear();
  const auto none = work_directory(checkpoint, options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().what.find("--work-dir"), std::string::npos);
}

}  // namespace
}  // namespace sluice
