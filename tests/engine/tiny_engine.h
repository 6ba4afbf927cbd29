// The bundled model opened for tests of the engine, and its golden replies.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "io/file.h"

namespace sluice {

inline std::filesystem::path tiny_path() {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "models" / "tiny-k3";
}

// 256 MiB hold the whole model; a context of 1,024. One thread: on a busy machine every meeting of
// several costs a time slice.
inline EngineOptions tiny_options() {
  EngineOptions options;
  options.model = tiny_path();
  options.ram_bytes = uint64_t{256} << 20;
  options.threads = 1;
  options.context_positions = 1024;
  return options;
}

inline std::unique_ptr<Engine> open_engine(const EngineOptions& options) {
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().what);
  return engine.ok() ? std::move(engine).value() : nullptr;
}

// One prompt of goldens.json with its greedy reply.
struct Golden {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::string text;
};

inline std::vector<Golden> read_goldens() {
  const std::string text = read_text_file(tiny_path() / "goldens.json", 1 << 20).value();
  const Json json = parse_json(text, "goldens.json").value();
  std::vector<Golden> goldens;
  for (const Json& prompt : json["prompts"]) {
    goldens.push_back(
        {prompt["name"], prompt["ids"], prompt["bf16"]["greedy"], prompt["bf16"]["text"]});
  }
  return goldens;
}

inline Golden golden(const std::string& name) {
  for (Golden& each : read_goldens()) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no golden " << name;
  return {};
}

// As many greedy tokens as the golden has.
inline GenerateRequest greedy_request(const Golden& golden) {
  return {.tokens = {.prompt = golden.prompt, .max_new = std::ssize(golden.greedy)}};
}

}  // namespace sluice
