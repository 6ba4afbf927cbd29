// The command line as plain values, and the only place that reads the environment. options.cpp is
// the one wrapper of CLI11. Pure function of its arguments and the environment; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "engine/options.h"
#include "engine/sampler.h"

namespace sluice {

// What every command that answers takes.
struct ReplyOptions {
  EngineOptions engine;
  std::string system;
  std::string reasoning_effort;  // empty: nothing is said about it
  bool no_thinking = false;
  bool show_thinking = false;
  int64_t max_new = 256;
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool stats = false;
};

// sluice run. Exactly one of the four prompts is set.
struct RunOptions : ReplyOptions {
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;  // "-": standard input
  std::optional<std::string> ids;          // "1,2,3"
  std::optional<std::string> messages;     // OpenAI-shaped JSON file; "-": standard input
  bool chat = false;                       // --prompt is a user message
  bool json = false;
  std::string dump;  // file to write, or empty
};

// sluice chat.
struct ChatOptions : ReplyOptions {
  ChatOptions() { max_new = 4096; }
};

// sluice serve.
struct ServeOptions {
  ServeOptions() { engine.sequences = 0; }
  EngineOptions engine;
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool no_auth = false;
  std::string model_name;   // empty: the directory's
  std::string cors_origin;  // empty: none
  int64_t queue = 64;
  double pass_s_max = 0.0;  // 0: auto
  double drain_timeout_s = 300.0;
  int64_t max_connections = 4096;
  bool quiet = false;        // no line for each request
  bool log_prompts = false;
};

// sluice plan.
struct PlanOptions {
  EngineOptions engine;
  std::optional<uint64_t> disk_bytes_s;  // --disk, of one drive
  int64_t drives = 1;
  std::optional<double> hit;  // --hit: share of a token's experts found in memory
  bool json = false;
};

// sluice convert. Of the engine's options only model, work directory, threads and direct count.
struct ConvertOptions {
  EngineOptions engine;
};

// sluice verify.
struct VerifyOptions {
  EngineOptions engine;
  bool anchors = false;
  int64_t n_layers_max = std::numeric_limits<int64_t>::max();  // --layers
};

// sluice bench. What a bench does not need it ignores.
struct BenchOptions {
  std::string kind;  // decode, rows, ...
  EngineOptions engine;
  int64_t pairs = 30;   // of arms
  int64_t tokens = 1;   // of an arm
  int64_t warmup = 8;   // tokens ahead of the first arm
  uint64_t seed = 1;
  uint64_t bytes = uint64_t{1} << 30;  // of an arm
  std::vector<int64_t> rows = {1, 2, 4, 8};
  std::string trace;  // file of routes
};

// sluice version.
struct VersionOptions {
  bool json = false;
};

// --help: text for standard output.
struct HelpText {
  std::string text;
};

struct CommandLine {
  std::variant<RunOptions, ChatOptions, ServeOptions, PlanOptions, ConvertOptions, VerifyOptions,
               BenchOptions, VersionOptions, HelpText>
      command;
};

// Any error is one of usage: one sentence with the cure.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

bool stdout_is_terminal();
bool stderr_is_terminal();
// Whether it is one that understands colours and the user wants them (NO_COLOR, TERM).
bool stdout_has_colour();

}  // namespace sluice
