// States on the drive: what is loaded goes on with the bits of what was saved, on any table,
// threads and memory; and nothing that is damaged or of another model is taken.
#include "engine/state_file.h"

#include <sys/stat.h>

#include <fstream>
#include <random>

#include "engine/state_codec.h"
#include "io/temp_directory.h"
#include "model/tiny_model.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

const StateKey kKey = {.fingerprint = std::string(64, 'a'),
                       .spine = "bf16",
                       .family = "fma",
                       .qkv_norm_eps = kQkvNormEps};

std::string file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The logits of a prompt's end and of two tokens decoded after it.
Logits go_on(TinyModel& tiny, State& state) {
  Logits all = tiny.keep(state, some_tokens(5, /*seed=*/9), 5);
  for (const TokenId token : {11, 400}) {
    const Logits row = tiny.attempt(state, {token});
    state.commit(1, tiny.model().compute());
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

unsigned mode_of(const fs::path& path) {
  struct stat info;
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 0777;
}

int64_t files_with(const fs::path& directory, const char* extension) {
  int64_t n = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    n += entry.path().extension() == extension ? 1 : 0;
  }
  return n;
}

class StateFile : public ::testing::Test {
 protected:
  // The state of `n` tokens, computed and saved.
  SavedState save(int64_t n) {
    tokens_ = some_tokens(n);
    state_ = tiny_.new_state();
    if (n > 0) tiny_.keep(*state_, tokens_, 0);
    return must(save_state(directory(), kKey, tokens_, *state_));
  }
  fs::path directory() const { return temp_.path() / "states"; }
  // Fails to load, and says so: the code, and that the file is named.
  void expect_refused(const SavedState& saved, Code code, const std::string& file,
                      const StateKey& key = kKey) {
    auto state = tiny_.new_state();
    tiny_.keep(*state, {7, 8, 9}, 0);
    const auto loaded = load_state(saved.path, key, *state);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, code) << loaded.error().what;
    EXPECT_NE(loaded.error().what.find(file), std::string::npos) << loaded.error().what;
    EXPECT_EQ(state->length(), 0);
  }

  TempDirectory temp_;
  TinyModel tiny_;
  std::vector<TokenId> tokens_;
  std::unique_ptr<State> state_;
};

TEST_F(StateFile, GoesOnWithTheSameBitsOnAnotherTableWithOtherThreadsAndLessMemory) {
  const uint64_t scratch = uint64_t{1} << 20;  // of two more threads
  TinyModel other({.isa = "scalar", .threads = 3, .ram_bytes = tiny_.plan().floor_bytes + scratch});
  ASSERT_LT(other.model().rows_max(), tiny_.model().rows_max());
  for (const int64_t n : {0, 1, 63, 64, 65, 255, 256, 257, 600}) {
    const SavedState saved = save(n);
    EXPECT_EQ(saved.n_tokens, n);
    EXPECT_EQ(saved.pages.size(), static_cast<size_t>(n / kPagePositions));
    const Logits want = go_on(tiny_, *state_);
    for (TinyModel* model : {&tiny_, &other}) {
      auto state = model->new_state();
      EXPECT_EQ(must(load_state(saved.path, kKey, *state)), tokens_);
      EXPECT_EQ(state->length(), n);
      EXPECT_TRUE(same_bits(go_on(*model, *state), want)) << n;
    }
  }
}

TEST_F(StateFile, GoesOnWithTheSameBitsWhereALayerKindIsAbsent) {
  for (const char* name : {"dense-kda", "dense-mla", "kimi-linear"}) {
    const fs::path model = fs::path(SLUICE_SOURCE_DIR "/tests/odd") / name;
    TinyModel odd({.model = model, .context = 1024});
    TinyModel other({.model = model, .isa = "scalar", .threads = 2, .context = 1024});
    const std::vector<TokenId> tokens = some_tokens(300, /*seed=*/1, /*vocab=*/61);
    auto state = odd.new_state();
    odd.keep(*state, tokens, 0);
    const SavedState saved = must(save_state(directory() / name, kKey, tokens, *state));
    auto restored = other.new_state();
    EXPECT_EQ(must(load_state(saved.path, kKey, *restored)), tokens);
    EXPECT_TRUE(same_bits(odd.keep(*state, {5, 6}, 2), other.keep(*restored, {5, 6}, 2))) << name;
  }
}

TEST_F(StateFile, IsNamedByItsTokensAndSavedTwiceHasTheSameBytes) {
  const SavedState saved = save(70);
  EXPECT_EQ(saved.path.filename(), state_file_name(kKey, tokens_));
  const std::string bytes = file_bytes(saved.path);
  EXPECT_EQ(bytes.size(), saved.bytes_written);
  EXPECT_EQ(must(save_state(directory(), kKey, tokens_, *state_)).path, saved.path);
  EXPECT_TRUE(file_bytes(saved.path) == bytes);
  StateKey other = kKey;
  other.spine = "k3i8";
  EXPECT_NE(state_file_name(other, tokens_), saved.path.filename());
}

TEST_F(StateFile, PagesAreSharedByStatesWithTheSamePrefix) {
  const SavedState first = save(512);
  EXPECT_EQ(files_with(directory(), ".page"), 2);
  const std::vector<TokenId> more = some_tokens(40, /*seed=*/2);
  tiny_.keep(*state_, more, 0);
  tokens_.insert(tokens_.end(), more.begin(), more.end());
  const SavedState second = must(save_state(directory(), kKey, tokens_, *state_));
  EXPECT_EQ(second.pages, first.pages);
  EXPECT_EQ(files_with(directory(), ".page"), 2);
  EXPECT_EQ(second.bytes_written, fs::file_size(second.path));
  EXPECT_EQ(first.bytes_written, fs::file_size(first.path) + 2 * fs::file_size(first.pages[0]));
}

TEST_F(StateFile, IsForItsOwnerAloneAndLeavesNoPart) {
  const mode_t before = ::umask(0);
  const SavedState saved = save(300);
  ::umask(before);
  EXPECT_EQ(mode_of(directory()), 0700u);
  EXPECT_EQ(mode_of(saved.path), 0600u);
  EXPECT_EQ(mode_of(saved.pages[0]), 0600u);
  EXPECT_EQ(files_with(directory(), ".part"), 0);
}

TEST_F(StateFile, APartOfAWriterThatDiedIsRemovedWhenItIsOld) {
  save(1);
  const fs::path fresh = directory() / "a.state.xxxxxx.part";
  const fs::path stale = directory() / "b.state.xxxxxx.part";
  write_bytes(fresh, "x");
  write_bytes(stale, "x");
  fs::last_write_time(stale, fs::file_time_type::clock::now() - std::chrono::hours(2));
  save(2);
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(stale));
}

TEST_F(StateFile, AnyBitThatIsDamagedIsFound) {
  const SavedState saved = save(70);
  const std::string whole = file_bytes(saved.path);
  std::mt19937 random(5);
  std::vector<size_t> places;
  for (size_t at = 0; at < kStateHeaderBytes + 300; ++at) places.push_back(at);
  for (int i = 0; i < 300; ++i) places.push_back(random() % whole.size());
  for (size_t back = 1; back <= 40; ++back) places.push_back(whole.size() - back);
  for (const size_t at : places) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    write_bytes(saved.path, damaged);
    auto state = tiny_.new_state();
    const auto loaded = load_state(saved.path, kKey, *state);
    ASSERT_FALSE(loaded.ok()) << at;
    EXPECT_NE(loaded.error().what.find(saved.path.string()), std::string::npos);
    EXPECT_EQ(state->length(), 0);
  }
  write_bytes(saved.path, whole);
  auto state = tiny_.new_state();
  EXPECT_TRUE(load_state(saved.path, kKey, *state).ok());
}

TEST_F(StateFile, AFileOfAnotherLengthIsRefused) {
  const SavedState saved = save(70);
  const std::string whole = file_bytes(saved.path);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{400},
                             whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    write_bytes(saved.path, std::string_view(whole).substr(0, bytes));
    expect_refused(saved, Code::kCorrupt, saved.path);
  }
  write_bytes(saved.path, whole + "x");
  expect_refused(saved, Code::kCorrupt, saved.path);
}

TEST_F(StateFile, AnotherKeyIsRefusedByName) {
  const SavedState saved = save(10);
  const auto refused = [&](const char* why, auto change) {
    StateKey key = kKey;
    change(key);
    auto state = tiny_.new_state();
    const auto loaded = load_state(saved.path, key, *state);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, Code::kUnsupported);
    EXPECT_NE(loaded.error().what.find(why), std::string::npos) << loaded.error().what;
    EXPECT_NE(loaded.error().what.find(saved.path.string()), std::string::npos);
  };
  refused("another model", [](StateKey& key) { key.fingerprint[63] = 'b'; });
  refused("spine format", [](StateKey& key) { key.spine = "k3i8"; });
  refused("kernel family", [](StateKey& key) { key.family = "amx"; });
  refused("--qkv-norm-eps", [](StateKey& key) { key.qkv_norm_eps = 1e-6f; });
}

TEST_F(StateFile, AnotherVersionIsRefusedByName) {
  const SavedState saved = save(10);
  std::string bytes = file_bytes(saved.path);
  bytes[8] = 2;
  write_bytes(saved.path, bytes);
  expect_refused(saved, Code::kUnsupported, "version 2");
}

TEST_F(StateFile, AMissingPageIsNamed) {
  const SavedState saved = save(600);
  fs::remove(saved.pages[1]);
  expect_refused(saved, Code::kIo, saved.pages[1]);
}

TEST_F(StateFile, ADamagedPageIsNamedAndRemovedSoThatTheNextSaveWritesIt) {
  const SavedState saved = save(600);
  const std::string whole = file_bytes(saved.pages[1]);
  std::mt19937 random(6);
  std::vector<size_t> places = {0, 16, 30, 33, 41, 50, 60};
  for (int i = 0; i < 40; ++i) places.push_back(random() % whole.size());
  for (const size_t at : places) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 64);
    write_bytes(saved.pages[1], damaged);
    expect_refused(saved, Code::kCorrupt, saved.pages[1]);
    EXPECT_FALSE(fs::exists(saved.pages[1]));
  }
  write_bytes(saved.pages[1], whole.substr(0, whole.size() - 1));
  expect_refused(saved, Code::kCorrupt, saved.pages[1]);
  EXPECT_GT(must(save_state(directory(), kKey, tokens_, *state_)).bytes_written, whole.size());
  EXPECT_TRUE(file_bytes(saved.pages[1]) == whole);
}

TEST_F(StateFile, APageOfAnotherPrefixIsRefused) {
  const SavedState saved = save(600);
  fs::copy_file(saved.pages[0], saved.pages[1], fs::copy_options::overwrite_existing);
  expect_refused(saved, Code::kCorrupt, saved.pages[1]);
}

TEST_F(StateFile, AStateLongerThanTheContextSaysSo) {
  const SavedState saved = save(300);
  TinyModel narrow({.n_sequences = 1, .context = kPagePositions});
  auto state = narrow.new_state();
  const auto loaded = load_state(saved.path, kKey, *state);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, Code::kBudget);
  EXPECT_NE(loaded.error().what.find("--context"), std::string::npos) << loaded.error().what;
  EXPECT_EQ(state->length(), 0);
  auto fits = narrow.new_state();  // all pages came back
  EXPECT_TRUE(fits->reserve(kPagePositions).ok());
}

TEST_F(StateFile, WhatCannotBeReadOrWrittenIsNamed) {
  const SavedState saved = save(3);
  auto state = tiny_.new_state();
  const auto missing = load_state(directory() / "none.state", kKey, *state);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().what.find("none.state"), std::string::npos);
  const auto refused = save_state(saved.path / "inside", kKey, tokens_, *state_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kIo);
  EXPECT_NE(refused.error().what.find("inside"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace sluice::testing
