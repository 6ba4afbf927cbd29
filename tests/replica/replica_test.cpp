// Plans for the released Kimi K3 on a machine that does not have it: every published size to the
// byte, damage named wherever it lies, and a lean opening of half a million tensors.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "app/process.h"
#include "base/count_allocations.h"
#include "base/json.h"
#include "format/checkpoint.h"
#include "format/fingerprint.h"
#include "io/file.h"
#include "io/temp_directory.h"
#include "make_slice/slice.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using slice::Tensor;

const slice::Shape kWhole;  // the released model
constexpr int64_t kTensors = 497'220;

// Layer 57 (KDA) lies deep in the middle; its shard is number 58.
constexpr int kShard = 58;
constexpr const char* kScale =
    "language_model.model.layers.57.block_sparse_moe.experts.413.w2.weight_scale";
constexpr const char* kDecay = "language_model.model.layers.57.self_attn.A_log";

constexpr int64_t kRssBytesMax = 300'000'000;
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kRssFactor = 4;  // shadow memory and the quarantine of freed blocks
#else
constexpr int64_t kRssFactor = 1;
#endif

// One replica for all tests; a test that damages a shard writes it again.
class Replica : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TempDirectory>();
    const Status written = slice::write_slice({.directory = path(), .shape = {}, .headers_only = true});
    ASSERT_TRUE(written.ok()) << written.error().what;
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static const fs::path& path() { return directory_->path(); }
  static fs::path shard() { return path() / slice::shard_name(kWhole, kShard); }

  // The error of opening the replica while `name` of shard 58 is as `edit` leaves it.
  template <class Edit>
  static std::string error_with(const std::string& name, Edit edit) {
    std::vector<Tensor> tensors = slice::shard_tensors(kWhole, kShard);
    const auto found = std::ranges::find(tensors, name, &Tensor::name);
    CHECK(found != tensors.end());
    edit(tensors, found);
    CHECK(slice::write_shard(shard(), tensors).ok());
    std::string error = open_error();
    CHECK(slice::write_shard(shard(), slice::shard_tensors(kWhole, kShard)).ok());
    return error;
  }
  static std::string open_error() {
    const auto checkpoint = Checkpoint::open(path(), Direct::kAuto);
    return checkpoint.ok() ? "" : checkpoint.error().what;
  }

 private:
  static inline std::unique_ptr<TempDirectory> directory_;
};

// Whether `text` has every one of `parts`.
::testing::AssertionResult names(const std::string& text,
                                 std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "no \"" << part << "\" in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

// What spec 2.1 says of a shard.
struct ShardSize {
  int64_t n_tensors;
  uint64_t payload_bytes;
};
ShardSize published_size(int64_t shard) {
  switch (shard) {
    case 1:
      return {23, 2'341'213'184};
    case 94:
      return {5, 4'697'663'488};
    case 95:
      return {3, 92'289'024};
    case 96:
      return {165, 802'428'928};
    default:
      return slice::is_mla(kWhole, shard - 1) ? ShardSize{5398, 16'566'684'160}
                                              : ShardSize{5404, 16'990'092'800};
  }
}

// First, so that this process is still small: a child's peak counts its parent's at the fork.
TEST_F(Replica, PlanGivesThePublishedSizesToTheByteInLittleMemory) {
  const ProcessResult plan =
      run_process({SLUICE_BINARY, "plan", path().string(), "--ram", "64GiB", "--json"});
  ASSERT_EQ(plan.exit_status, 0) << plan.err;
  rusage children{};
  ASSERT_EQ(::getrusage(RUSAGE_CHILDREN, &children), 0);
  EXPECT_LT(children.ru_maxrss * 1024, kRssBytesMax * kRssFactor);

  const Json json = parse_json(plan.out, "plan").value();
  EXPECT_EQ(json["ram"], uint64_t{64} << 30);
  EXPECT_EQ(json["layers"], 93);
  EXPECT_EQ(json["experts"], 82'432);
  EXPECT_EQ(json["experts_per_token"], 1'472);
  EXPECT_EQ(json["spine_bytes"], 113'509'540'864);
  EXPECT_EQ(json["expert_bytes"], 1'446'456'066'048);
  EXPECT_EQ(json["expert_record_bytes"], 17'547'264);
  EXPECT_EQ(json["max_positions"], 1'048'576);

  const Json& sizes = json["checkpoint"];
  EXPECT_EQ(sizes["tensors"], 497'220);
  EXPECT_EQ(sizes["unclaimed_tensors"], 168);  // vision tower 165, projector 3
  EXPECT_EQ(sizes["spine_bytes"], 113'509'540'864);
  EXPECT_EQ(sizes["embed_head_bytes"], 4'697'620'480);
  EXPECT_EQ(sizes["kda_state_bytes"], 464'633'856);  // 69 x (96 x 128^2 + 9 x 12288) fp32
  EXPECT_EQ(sizes["latent_bytes_per_token"], 55'296);
  ASSERT_EQ(sizes["layer_bytes"].size(), 93u);
  EXPECT_EQ(sizes["layer_bytes"][0], 2'341'213'184);
  for (int layer = 1; layer < 93; ++layer) {
    EXPECT_EQ(sizes["layer_bytes"][static_cast<size_t>(layer)],
              slice::is_mla(kWhole, layer) ? 844'335'616 : 1'267'744'256)
        << layer;
  }
}

TEST_F(Replica, EveryShardHasThePublishedTensorsAndBytes) {
  int64_t n_tensors = 0;
  for (int64_t shard = 1; shard <= 96; ++shard) {
    const std::vector<Tensor> tensors = slice::shard_tensors(kWhole, shard);
    uint64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += tensor.bytes();
    EXPECT_EQ(static_cast<int64_t>(tensors.size()), published_size(shard).n_tensors) << shard;
    EXPECT_EQ(bytes, published_size(shard).payload_bytes) << shard;
    n_tensors += static_cast<int64_t>(tensors.size());
  }
  EXPECT_EQ(n_tensors, kTensors);
  EXPECT_EQ(kWhole.shards(), 96);
  EXPECT_EQ(slice::payload_bytes(kWhole), 1'560'860'324'864);  // total_size of the index
}

// What a plan costs must not grow into allocations a tensor: a bound that no busy machine moves.
TEST_F(Replica, OpeningAllocatesFarLessThanOnceATensor) {
  const int64_t before = testing::n_allocations;
  const auto checkpoint = Checkpoint::open(path(), Direct::kAuto);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  ASSERT_TRUE(fingerprint(checkpoint.value()).ok());
  const int64_t taken = testing::n_allocations - before;
  EXPECT_LT(taken, kTensors / 10);
  EXPECT_GT(taken, 1000);  // the count counts
}

TEST_F(Replica, TokenizerFilesMakeTheWholeVocabulary) {
  const auto tokenizer =
      Tokenizer::parse(read_text_file(path() / "tiktoken.model", 1 << 24).value(),
                       read_text_file(path() / "tokenizer_config.json", 1 << 20).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().what;
  EXPECT_EQ(tokenizer.value().vocab_size(), 163'840);
  EXPECT_EQ(tokenizer.value().special("<|end_of_msg|>"), 163'586);
  EXPECT_EQ(tokenizer.value().special("<osagent_mode>"), 163'649);
}

TEST_F(Replica, ExpertsLieWhereTheirHeaderSays) {
  const auto checkpoint = Checkpoint::open(path(), Direct::kAuto);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().what;
  // Blob order of spec 2.4.
  const std::array<uint64_t, kExpertPieces> offsets = {0,          5'505'024,  5'849'088,
                                                       11'354'112, 11'698'176, 17'203'200};
  EXPECT_EQ(checkpoint.value().expert_layout().piece_offset, offsets);
  // By name "10" follows "1", so that expert 10 is the third of its shard.
  const uint64_t record = checkpoint.value().expert_layout().record_bytes;
  const ExpertRef first = checkpoint.value().expert({LayerId{57}, ExpertId{0}});
  const ExpertRef tenth = checkpoint.value().expert({LayerId{57}, ExpertId{10}});
  EXPECT_EQ(first.file, kShard - 1);
  EXPECT_EQ(tenth.offset, first.offset + 2 * record);
}

TEST_F(Replica, ATensorThatTheShardLacksIsNamed) {
  const std::string error = error_with(kScale, [](auto& all, auto it) { all.erase(it); });
  EXPECT_TRUE(names(error, {shard().string(), kScale, "index.json"}));
}

TEST_F(Replica, ATensorThatShardAndIndexLackIsNamed) {
  ASSERT_TRUE(slice::write_index(path(), kWhole, kScale).ok());
  const std::string error = error_with(kScale, [](auto& all, auto it) { all.erase(it); });
  ASSERT_TRUE(slice::write_index(path(), kWhole, "").ok());
  EXPECT_TRUE(names(error, {kScale, "in no shard"}));
}

TEST_F(Replica, AWrongShapeIsNamed) {
  const std::string expert = error_with(kScale, [](auto&, auto it) { it->shape = {3584, 48}; });
  EXPECT_TRUE(names(expert, {shard().string(), kScale, "[3584, 48]", "[3584, 96]"}));
  const std::string decay = error_with(kDecay, [](auto&, auto it) { it->shape = {95}; });
  EXPECT_TRUE(names(decay, {shard().string(), kDecay, "[95]", "[96]"}));
}

TEST_F(Replica, AWrongDtypeIsNamed) {
  const std::string expert = error_with(kScale, [](auto&, auto it) { it->dtype = "BF16"; });
  EXPECT_TRUE(names(expert, {shard().string(), kScale, "BF16", "U8"}));
  const std::string decay = error_with(kDecay, [](auto&, auto it) { it->dtype = "U8"; });
  EXPECT_TRUE(names(decay, {shard().string(), kDecay, "U8", "F32"}));
}

TEST_F(Replica, AMissingShardIsNamed) {
  const fs::path aside = path() / "aside";
  fs::rename(shard(), aside);
  const std::string error = open_error();
  fs::rename(aside, shard());
  EXPECT_TRUE(names(error, {slice::shard_name(kWhole, kShard), "1 of 96"}));
}

TEST_F(Replica, ATruncatedShardIsNamed) {
  const uintmax_t size = fs::file_size(shard());
  fs::resize_file(shard(), size - 1);
  const std::string error = open_error();
  fs::resize_file(shard(), size);
  EXPECT_TRUE(names(error, {shard().string(), "truncated"}));
}

// Last: every damage above was mended.
TEST_F(Replica, OpensAfterAllThat) { EXPECT_EQ(open_error(), ""); }

}  // namespace
}  // namespace sluice
