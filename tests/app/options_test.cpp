// The command line as values.
#include "app/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>

#include "app/option_values.h"

namespace sluice {
namespace {

RunOptions run_options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"sluice", "run", "--prompt", "x"});
  const auto line = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(line.ok()) << (line.ok() ? "" : line.error().what);
  return line.ok() ? std::get<RunOptions>(line.value().command) : RunOptions{};
}

TEST(Options, EveryEngineOptionArrives) {
  const RunOptions run =
      run_options({"dir/model", "--ram", "2GiB", "--threads", "3", "--isa", "scalar",
                   "--expert-cache", "5MB", "--context", "77", "--qkv-norm-eps", "1e-6",
                   "--no-direct", "--spine", "int8", "--work-dir", "w"});
  EXPECT_EQ(run.engine.model, "dir/model");
  EXPECT_EQ(run.engine.ram_bytes, uint64_t{2} << 30);
  EXPECT_EQ(run.engine.threads, 3);
  EXPECT_EQ(run.engine.isa, "scalar");
  EXPECT_EQ(run.engine.expert_cache_bytes, uint64_t{5000000});
  EXPECT_EQ(run.engine.context_positions, 77);
  EXPECT_EQ(run.engine.qkv_norm_eps, 1e-6f);
  EXPECT_EQ(run.engine.direct, Direct::kOff);
  EXPECT_EQ(run.engine.spine, SpineChoice::kInt8);
  EXPECT_EQ(run.engine.work_dir, "w");
}

TEST(Options, DefaultsAreTheBundledModelAndGreedy) {
  const RunOptions run = run_options({});
  EXPECT_TRUE(run.engine.model.string().ends_with("tiny-k3"));
  EXPECT_EQ(run.engine.direct, Direct::kAuto);
  EXPECT_EQ(run.sampling.temperature, 0.0);
  EXPECT_EQ(run.sampling.top_p, 1.0);
  EXPECT_EQ(run.max_new, 256);
}

TEST(Options, ConvertTakesModelWorkDirectoryAndThreads) {
  const char* arguments[] = {"sluice",     "convert", "dir/model", "--spine", "int8",
                             "--work-dir", "w",       "--threads", "3",       "--no-direct"};
  const auto line = parse_command_line(static_cast<int>(std::size(arguments)), arguments);
  ASSERT_TRUE(line.ok()) << line.error().what;
  const EngineOptions& engine = std::get<ConvertOptions>(line.value().command).engine;
  EXPECT_EQ(engine.model, "dir/model");
  EXPECT_EQ(engine.work_dir, "w");
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(engine.direct, Direct::kOff);
}

TEST(Options, TheCacheDirectoryIsTheEnvironments) {
  ::setenv("HOME", "/home/someone", 1);
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(run_options({}).engine.cache_home, "/cache");
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, says its specification
  EXPECT_EQ(run_options({}).engine.cache_home, "/home/someone/.cache");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(run_options({}).engine.cache_home, "/home/someone/.cache");
  ::unsetenv("HOME");
  EXPECT_TRUE(run_options({}).engine.cache_home.empty());
}

TEST(Options, TextIsTakenAsItIs) {
  EXPECT_EQ(run_options({"--system", "-- [a, b]", "--chat"}).system, "-- [a, b]");
  EXPECT_EQ(run_options({"--stop", "[a,b]", "--stop", "-x"}).stop,
            (std::vector<std::string>{"[a,b]", "-x"}));
}

TEST(Options, NumbersAreDecimal) {
  EXPECT_EQ(run_options({"--max-new", "010"}).max_new, 10);
  EXPECT_EQ(run_options({"--seed", "18446744073709551615"}).sampling.seed, UINT64_MAX);
}

TEST(Options, LogitBiasesComeSinglyAndInLists) {
  const auto biases =
      run_options({"--logit-bias", "5=-1.5,6=2", "--logit-bias", "7=0"}).sampling.logit_bias;
  ASSERT_EQ(biases.size(), 3u);
  EXPECT_EQ(biases[0].id, 5);
  EXPECT_EQ(biases[0].bias, -1.5);
  EXPECT_EQ(biases[2].id, 7);
}

TEST(Options, IdsMayBeSeparatedByCommasAndBlanks) {
  EXPECT_EQ(parse_ids("1,2, 3 4\n").value(), (std::vector<TokenId>{1, 2, 3, 4}));
  EXPECT_TRUE(parse_ids("").value().empty());
  for (const char* bad : {"1;2", "x", "1.5", "99999999999"}) EXPECT_FALSE(parse_ids(bad).ok());
}

TEST(Options, RatesAreSizesPerSecond) {
  EXPECT_EQ(parse_rate("7.3GB/s").value(), 7300000000u);
  EXPECT_EQ(parse_rate("500MB").value(), 500000000u);
  for (const char* bad : {"", "0", "fast", "1GB/h"}) EXPECT_FALSE(parse_rate(bad).ok()) << bad;
}

}  // namespace
}  // namespace sluice
