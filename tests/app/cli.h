// The real binary on the bundled model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "app/process.h"
#include "base/json.h"
#include "io/file.h"
#include "io/temp_directory.h"

namespace sluice {

inline std::filesystem::path tiny_path() {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "models" / "tiny-k3";
}

// `sluice` with these arguments. Without --threads a run takes one: on a busy machine every meeting
// of several costs a time slice.
inline ProcessResult cli(std::vector<std::string> arguments, ProcessOptions options = {}) {
  const bool threads = std::ranges::find(arguments, "--threads") != arguments.end();
  if (!threads && !arguments.empty() && arguments[0] == "run") {
    arguments.insert(arguments.begin() + 1, {"--threads", "1"});
  }
  arguments.insert(arguments.begin(), SLUICE_BINARY);
  return run_process(arguments, std::move(options));
}

// What `run` says on standard error of every bundled run that is left to choose, before anything
// else.
constexpr const char* kSpineNote = "sluice: spine bf16 (auto: it fits in memory)\n";

// Standard error without that line.
inline std::string errors_of(const ProcessResult& result) {
  const std::string note = kSpineNote;
  return result.err.starts_with(note) ? result.err.substr(note.size()) : result.err;
}

// One prompt of goldens.json.
inline Json golden(const std::string& name) {
  const std::string text = read_text_file(tiny_path() / "goldens.json", 1 << 20).value();
  const Json goldens = parse_json(text, "goldens.json").value();
  for (const Json& prompt : goldens["prompts"]) {
    if (prompt["name"] == name) return prompt;
  }
  ADD_FAILURE() << "no golden " << name;
  return {};
}

// Standard output as exactly one JSON object on one line.
inline Json only_object(const ProcessResult& result) {
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_EQ(result.out.find('\n') + 1, result.out.size());
  auto json = parse_json(result.out, "standard output");
  EXPECT_TRUE(json.ok() && json.value().is_object()) << result.out;
  return json.ok() ? json.value() : Json::object();
}

}  // namespace sluice
