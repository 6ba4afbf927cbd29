// One command's options on the command line: the wrapper of CLI11 for options*.cpp. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/numbers.h"
#include "app/options.h"
#include "base/error.h"

namespace sluice {

constexpr int64_t kCountMax = int64_t{1} << 40;

// Values are parsed by our own strict functions: CLI11 reads 010 as 8 and "[EOS]" as a list. The
// first value that does not parse becomes the error of the command line.
class Parser {
 public:
  explicit Parser(CLI::App& app, std::optional<Error>& problem) : app_(app), problem_(problem) {}

  void text(const char* name, std::string& out, const char* help) {
    value(name, help, [&out](const std::string& text) -> Status {
      out = text;
      return Ok{};
    });
  }
  void text(const char* name, std::optional<std::string>& out, const char* help) {
    value(name, help, [&out](const std::string& text) -> Status {
      out = text;
      return Ok{};
    });
  }
  template <class T>
  void number(const char* name, T& out, T least, T most, const char* help) {
    value(name, help, [&out, name, least, most](const std::string& text) -> Status {
      TRY(out, parse_number<T>(name, text, least, most));
      return Ok{};
    })->type_name("N");
  }
  void flag(const char* name, bool& out, const char* help) { app_.add_flag(name, out, help); }
  void action(const char* name, const char* help, std::function<void()> act) {
    app_.add_flag_callback(name, std::move(act), help);
  }

  // A file of these options, one a line.
  void config_file(const char* name, const char* help) {
    app_.set_config(name, "", help);
    app_.allow_config_extras(CLI::config_extras_mode::error);
  }

  template <class Parse>
  void size(const char* name, const char* help, Parse parse) {
    value(name, help, parse)->type_name("SIZE");
  }
  // May be given several times; `parse` sees every value in order.
  template <class Parse>
  void values(const char* name, const char* help, Parse parse) {
    const auto each = [this, parse](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) note(parse(text));
    };
    app_.add_option_function<std::vector<std::string>>(name, each, help)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  template <class Parse>
  CLI::Option* value(const char* name, const char* help, Parse parse) {
    return app_
        .add_option_function<std::string>(
            name, [this, parse](const std::string& text) { note(parse(text)); }, help)
        ->allow_extra_args(false);
  }

 private:
  void note(Status status) {
    if (!status.ok() && !problem_) problem_ = status.error();
  }

  CLI::App& app_;
  std::optional<Error>& problem_;
};

// MODEL, and what commands that do not compute take too.
void add_files(Parser& parser, EngineOptions& engine);
// The same, and how to compute.
void add_engine(Parser& parser, EngineOptions& engine);
void add_emulation(Parser& parser, EngineOptions& engine);

void add_bench(Parser& parser, BenchOptions& bench);
void add_serve(Parser& parser, ServeOptions& serve);

}  // namespace sluice
