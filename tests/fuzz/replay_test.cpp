// The committed seeds and regressions of every fuzz target, without libFuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/fuzz_targets.h"
#include "io/file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  void (*function)(std::string_view);
};

class FuzzReplay : public ::testing::TestWithParam<Target> {};

std::vector<fs::path> inputs(const std::string& kind, const std::string& target) {
  const fs::path directory = fs::path(SLUICE_SOURCE_DIR) / "tests" / "fuzz" / kind / target;
  std::vector<fs::path> paths;
  if (!fs::exists(directory)) return paths;
  for (const auto& entry : fs::directory_iterator(directory)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

TEST_P(FuzzReplay, SeedsAndRegressionsKeepTheInvariants) {
  const Target& target = GetParam();
  std::vector<fs::path> paths = inputs("seeds", target.name);
  EXPECT_FALSE(paths.empty()) << target.name << " has no seed";
  std::ranges::copy(inputs("regressions", target.name), std::back_inserter(paths));
  target.function("");
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path);
    const Result<std::string> input = read_text_file(path, 1 << 20);
    ASSERT_TRUE(input.ok());
    target.function(input.value());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplay,
                         ::testing::Values(Target{"json", fuzz_json}, Target{"config", fuzz_config},
                                           Target{"generation_config", fuzz_generation_config},
                                           Target{"safetensors", fuzz_safetensors},
                                           Target{"index", fuzz_index},
                                           Target{"checkpoint", fuzz_checkpoint},
                                           Target{"tokenizer", fuzz_tokenizer},
                                           Target{"text", fuzz_text}, Target{"chat", fuzz_chat},
                                           Target{"reply", fuzz_reply}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice
