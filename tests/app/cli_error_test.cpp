// Every bad input gives one line on standard error that names the thing, nothing on standard
// output, and the exit status of its kind: 1 failed, 2 usage.
#include <algorithm>
#include <fstream>

#include "app/cli.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Runs, and checks status, the single line and that it holds `named`.
std::string expect_error(const std::vector<std::string>& arguments, int status,
                         const std::string& named) {
  const ProcessResult result = cli(arguments);
  std::string shown;
  for (const std::string& argument : arguments) shown += argument + " ";
  EXPECT_EQ(result.exit_status, status) << shown << result.err;
  EXPECT_EQ(result.out, "") << shown;
  EXPECT_TRUE(result.err.starts_with("sluice: ")) << shown << result.err;
  EXPECT_EQ(std::ranges::count(errors_of(result), '\n'), 1) << shown << result.err;
  EXPECT_NE(result.err.find(named), std::string::npos) << shown << result.err;
  return result.err;
}

// run with a prompt and these arguments.
std::string run_error(std::vector<std::string> arguments, int status, const std::string& named) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--prompt", "Hi", "--max-new", "1"});
  return expect_error(arguments, status, named);
}

// A copy of the bundled model to damage.
class ModelCopy {
 public:
  ModelCopy() { fs::copy(tiny_path(), directory_.path()); }
  fs::path operator/(const char* name) const { return directory_.path() / name; }
  std::string path() const { return directory_.path(); }

 private:
  TempDirectory directory_;
};

void replace_in_file(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = read_text_file(path, 1 << 20).value();
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

TEST(CliError, AMissingOrEmptyModelDirectory) {
  run_error({"/nonexistent/model"}, 1, "/nonexistent/model");
  expect_error({"plan", "/nonexistent/model"}, 1, "/nonexistent/model");
  const TempDirectory empty;
  run_error({empty.path()}, 1, "config.json");
}

TEST(CliError, ADamagedSnapshot) {
  const char* shard = "model-00003-of-000010.safetensors";
  {
    const ModelCopy model;
    fs::resize_file(model / shard, fs::file_size(model / shard) - 1000);
    run_error({model.path()}, 1, shard);
  }
  {
    const ModelCopy model;
    fs::remove(model / shard);
    run_error({model.path()}, 1, shard);
  }
  {
    const ModelCopy model;
    fs::remove(model / "tiktoken.model");
    run_error({model.path()}, 1, "tiktoken.model");
  }
  {
    const ModelCopy model;
    replace_in_file(model / "config.json", "\"vocab_size\": 4096", "\"vocab_size\": 0");
    run_error({model.path()}, 1, "vocab_size");
  }
}

TEST(CliError, AMissingTensor) {
  const ModelCopy model;
  const std::string rest = ".model.layers.2.self_attn.o_proj.weight";
  // A name of the same length that no layer claims, in the shard's header and in the index.
  const std::string name = "language_model" + rest;
  const std::string other = "vision_tower__" + rest;
  const fs::path shard = model / "model-00003-of-000010.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  std::string head(1 << 19, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const size_t at = head.find(name);
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file << other;
  file.close();
  replace_in_file(model / "model.safetensors.index.json", name, other);
  run_error({model.path()}, 1, "self_attn.o_proj.weight");
}

TEST(CliError, UnknownFlagsAndCommands) {
  run_error({"--frobnicate"}, 2, "--frobnicate");
  expect_error({"frobnicate"}, 2, "frobnicate");
  expect_error({}, 2, "run");
  expect_error({"run", "--prompt"}, 2, "--prompt");
  expect_error({"run", "a-model", "b-model", "--prompt", "x"}, 2, "b-model");
}

TEST(CliError, ValuesThatDoNotParse) {
  run_error({"--ram", "lots"}, 2, "lots");
  run_error({"--ram", "0"}, 2, "--ram");
  run_error({"--ram", "5parsecs"}, 2, "5parsecs");
  run_error({"--expert-cache", "-1"}, 2, "-1");
  run_error({"--isa", "mmx"}, 2, "mmx");
  run_error({"--spine", "fp64"}, 2, "fp64");
  run_error({"--threads", "0"}, 2, "--threads");
  run_error({"--threads", "2x"}, 2, "2x");
  run_error({"--context", "0"}, 2, "--context");
  run_error({"--temperature", "-1"}, 2, "--temperature");
  run_error({"--temperature", "nan"}, 2, "nan");
  run_error({"--top-p", "1.5"}, 2, "1.5");
  run_error({"--seed", "-1"}, 2, "--seed");
  run_error({"--logit-bias", "5"}, 2, "ID=BIAS");
  run_error({"--stop", ""}, 2, "--stop");
  expect_error({"plan", "--disk", "fast"}, 2, "fast");
  expect_error({"run", "--prompt", "x", "--max-new", "-3"}, 2, "--max-new");
}

TEST(CliError, OptionsThatOnlyTheModelCanRefuse) {
  run_error({"--context", "5000"}, 1, "4096");
  run_error({"--spine", "int8"}, 1, "--spine bf16");
  run_error({"--isa", "neon"}, 1, "neon");
  run_error({"--logit-bias", "4096=1"}, 1, "4096");
  run_error({"--top-p", "0"}, 1, "top-p");
  run_error({"--expert-cache", "1kB"}, 1, "--expert-cache");
}

TEST(CliError, PromptsThatAreMissingOrConflict) {
  expect_error({"run"}, 2, "--prompt");
  expect_error({"run", "--prompt", "a", "--ids", "1"}, 2, "several");
  expect_error({"run", "--prompt", "a", "--prompt-file", "b"}, 2, "several");
  expect_error({"run", "--ids", "1", "--chat"}, 2, "--chat");
  expect_error({"run", "--prompt", "a", "--system", "b"}, 2, "--chat");
  expect_error({"run", "--prompt", "a", "--no-thinking"}, 2, "--chat");
  expect_error({"run", "--prompt", "a", "--reasoning-effort", "low"}, 2, "--chat");
  expect_error({"run", "--chat", "--prompt", "a", "--reasoning-effort", "medium"}, 2, "medium");
  expect_error({"run", "--prompt", "a", "--prompt", "b"}, 2, "--prompt");
}

TEST(CliError, PromptsThatCannotBeRun) {
  expect_error({"run", "--prompt", ""}, 1, "empty");
  expect_error({"run", "--chat", "--prompt", ""}, 1, "empty");
  expect_error({"run", "--ids", ""}, 1, "empty");
  expect_error({"run", "--ids", "1,4096"}, 1, "4096");
  expect_error({"run", "--ids", "1,-5"}, 1, "-5");
  expect_error({"run", "--ids", "1,two"}, 1, "two");
  expect_error({"run", "--prompt-file", "/nonexistent/prompt"}, 1, "/nonexistent/prompt");
  expect_error({"run", "--messages", "/nonexistent/messages"}, 1, "/nonexistent/messages");
  expect_error({"run", "--ids", "1,2,3,4,5,6,7,8", "--context", "8"}, 1, "--context");
}

TEST(CliError, MessagesThatAreNoChat) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "messages.json";
  const auto refuse = [&](std::string_view text, const std::string& named) {
    std::ofstream(file) << text;
    const std::string line = expect_error({"run", "--messages", file}, 1, named);
    EXPECT_NE(line.find("messages.json"), std::string::npos) << line;
  };
  refuse("{\"messages\": [", "JSON");
  refuse("{}", "messages");
  refuse("{\"messages\": 5}", "messages");
  refuse("{\"messages\": [{\"role\": \"user\", \"content\": 5}]}", "content");
  refuse("", "JSON");
}

TEST(CliError, MemoryBelowTheFloorNamesAFloorThatWorks) {
  const std::string line = run_error({"--ram", "1MB"}, 1, "floor");
  constexpr std::string_view kAtLeast = "at least ";
  const size_t found = line.find(kAtLeast);
  ASSERT_NE(found, std::string::npos) << line;
  const std::string floor = std::to_string(std::stoull(line.substr(found + kAtLeast.size())));
  const ProcessResult result =
      cli({"run", "--prompt", "The capital of France is", "--max-new", "2", "--ram", floor});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(result.out, " Paris.\n");
}

TEST(CliError, OutputThatCannotBeWritten) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "--prompt", "Hi", "--max-new", "50"},
        {"run", "--prompt", "Hi", "--max-new", "1", "--json"},
        {"plan"},
        {"version"},
        {"--help"}}) {
    ProcessOptions full;
    full.stdout_path = "/dev/full";
    const ProcessResult result = cli(arguments, full);
    EXPECT_EQ(result.exit_status, 1) << arguments[0];
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(errors_of(result), '\n'), 1) << result.err;
  }
  run_error({"--dump", "/nonexistent/dump"}, 1, "/nonexistent/dump");
  const TempDirectory directory;
  fs::create_directory(directory.path() / "taken");
  run_error({"--dump", directory.path() / "taken"}, 1, "taken");
  EXPECT_FALSE(fs::exists(directory.path() / "taken.part"));
}

}  // namespace
}  // namespace sluice
