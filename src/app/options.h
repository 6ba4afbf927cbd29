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

// sluice run. Exactly one of the four prompts is set.
struct RunOptions {
  EngineOptions engine;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;  // "-": standard input
  std::optional<std::string> ids;          // "1,2,3"
  std::optional<std::string> messages;     // OpenAI-shaped JSON file; "-": standard input
  bool chat = false;                       // --prompt is a user message
  std::string system;
  std::string reasoning_effort;  // empty: nothing is said about it
  bool no_thinking = false;
  int64_t max_new = 256;
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool json = false;
  bool stats = false;
  bool show_thinking = false;
  std::string dump;  // file to write, or empty
};

// sluice plan.
struct PlanOptions {
  EngineOptions engine;
  std::optional<uint64_t> disk_bytes_s;  // --disk
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

// sluice version.
struct VersionOptions {
  bool json = false;
};

// --help: text for standard output.
struct HelpText {
  std::string text;
};

struct CommandLine {
  std::variant<RunOptions, PlanOptions, ConvertOptions, VerifyOptions, VersionOptions, HelpText>
      command;
};

// Any error is one of usage: one sentence with the cure.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

bool stdout_is_terminal();
bool stderr_is_terminal();
// Whether it is one that understands colours and the user wants them (NO_COLOR, TERM).
bool stdout_has_colour();

// "1,2,3" or "1 2 3" -> ids; kInvalid names the part that is no token id.
Result<std::vector<TokenId>> parse_ids(std::string_view text);

// "7.3GB/s" -> bytes a second; kInvalid names the text.
Result<uint64_t> parse_rate(std::string_view text);

}  // namespace sluice
