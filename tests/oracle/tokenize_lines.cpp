// tokenize_lines TIKTOKEN_MODEL TOKENIZER_CONFIG < STRINGS: what sluice's tokenizer makes of each
// JSON string of standard input, one a line, as ids with spaces between. For comparisons with other
// tokenizers (docs/ORACLES.md).
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "base/json.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

Result<std::string> read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good()) return Error{Code::kIo, std::string(path) + " cannot be read; check the path"};
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

Status tokenize_lines(const char* model_path, const char* config_path) {
  TRY(const std::string model, read_file(model_path));
  TRY(const std::string config, read_file(config_path));
  TRY(const Tokenizer tokenizer, Tokenizer::parse(model, config));
  std::string line, out;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string where = "standard input line " + std::to_string(number);
    TRY(const Json text, parse_json(line, where));
    if (!text.is_string()) return Error{Code::kInvalid, where + " is not a JSON string"};
    out.clear();
    for (const TokenId id : tokenizer.encode(text.get_ref<const std::string&>())) {
      if (!out.empty()) out += ' ';
      out += std::to_string(id);
    }
    out += '\n';
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  return Ok{};
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenize_lines TIKTOKEN_MODEL TOKENIZER_CONFIG < STRINGS\n");
    return 2;
  }
  const sluice::Status done = sluice::tokenize_lines(argv[1], argv[2]);
  if (!done.ok()) std::fprintf(stderr, "tokenize_lines: %s\n", done.error().what.c_str());
  return done.ok() ? 0 : 1;
}
