// Files of a snapshot that are no files: devices, FIFOs, directories, loops, empty and huge ones.
#include <functional>

#include <sys/stat.h>

#include "hostile/refusal.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Every file that a run of the model needs.
std::vector<std::string> needed_files() {
  return {"config.json",           "generation_config.json", kIndexName,
          TinyCopy::shard_name(2), "tiktoken.model",         "tokenizer_config.json"};
}

// For each needed file: `replace(path)` puts something else in its place, and the run names it.
void expect_each_refused(const std::function<void(const fs::path&)>& replace) {
  for (const std::string& name : needed_files()) {
    const TinyCopy copy;
    fs::remove(copy.path() / name);
    replace(copy.path() / name);
    expect_one_line(run_one_token(copy.path()), name);
  }
}

TEST(HostilePaths, DevicesAreNotRead) {
  for (const char* device : {"/dev/zero", "/dev/null", "/dev/tty"}) {
    expect_each_refused([&](const fs::path& path) { fs::create_symlink(device, path); });
  }
}

TEST(HostilePaths, AFifoDoesNotHangTheProgram) {
  expect_each_refused(
      [](const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path; });
}

TEST(HostilePaths, DirectoriesAreNotRead) {
  expect_each_refused([](const fs::path& path) { fs::create_directory(path); });
}

TEST(HostilePaths, EmptyFilesAreNamed) {
  expect_each_refused([](const fs::path& path) { write_file(path, ""); });
}

// generation_config.json is left out: like an absent one, a loop there is no file.
TEST(HostilePaths, SymlinkLoopsEnd) {
  for (const std::string& name : needed_files()) {
    if (name == "generation_config.json") continue;
    const TinyCopy copy;
    fs::remove(copy.path() / name);
    fs::create_symlink(copy.path() / "loop", copy.path() / name);
    fs::create_symlink(copy.path() / name, copy.path() / "loop");
    // A loop in the place of the index reads as a snapshot without one.
    expect_one_line(run_one_token(copy.path()), name);
  }
}

TEST(HostilePaths, HugeSparseFilesAreRefusedUnread) {
  for (const std::string& name : needed_files()) {
    const TinyCopy copy;
    replace_file(copy, name, "");
    fs::resize_file(copy.path() / name, uint64_t{1} << 30);
    expect_one_line(run_one_token(copy.path()), name);
  }
}

TEST(HostilePaths, AnIndexReachesNoFileOutsideItsDirectory) {
  for (const char* name :
       {"/dev/zero", "../../../../dev/zero", "..", ".", "", "a/b", "a\\b", "/etc/passwd"}) {
    const TinyCopy copy;
    edit_json(copy.own(kIndexName),
              [&](Json& index) { index["weight_map"]["language_model.model.norm.weight"] = name; });
    expect_refused(copy, kIndexName);
  }
  const TinyCopy copy;
  std::string text = read_file(copy.path() / kIndexName);
  const std::string shard = TinyCopy::shard_name(10);
  text.replace(text.find(shard), shard.size(), "x\\u0000y");
  replace_file(copy, kIndexName, text);
  expect_refused(copy, kIndexName);
}

TEST(HostilePaths, AFileNameLongerThanTheSystemAllows) {
  const TinyCopy copy;
  edit_json(copy.own(kIndexName), [&](Json& index) {
    index["weight_map"]["language_model.model.norm.weight"] = std::string(1000, 'a');
  });
  expect_refused(copy, "shards are missing");
}

TEST(HostilePaths, AModelThatIsAFileOrALoop) {
  const TinyCopy copy;
  expect_one_line(run_one_token(copy.path() / "config.json"), "not a directory");
  fs::create_symlink(copy.path() / "b", copy.path() / "a");
  fs::create_symlink(copy.path() / "a", copy.path() / "b");
  expect_one_line(run_one_token(copy.path() / "a"), "not a directory");
}

}  // namespace
}  // namespace sluice
