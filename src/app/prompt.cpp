#include "app/prompt.h"

#include <array>
#include <cstdio>
#include <utility>

#include "app/option_values.h"
#include "base/json.h"
#include "io/file.h"

namespace sluice {
namespace {

constexpr uint64_t kPromptBytesMax = 64 << 20;  // 1 M tokens of K3 are about 4 MB

Result<std::string> read_stdin() {
  std::string text;
  std::array<char, 65536> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), n);
    if (text.size() > kPromptBytesMax) {
      return Error{Code::kInvalid, "standard input is longer than 64 MiB; give a shorter prompt"};
    }
  }
  if (std::ferror(stdin)) return Error{Code::kIo, "standard input cannot be read"};
  return text;
}

Result<std::string> read_input(const std::string& path) {
  return path == "-" ? read_stdin() : read_text_file(path, kPromptBytesMax);
}

Result<ChatRequest> read_messages(const std::string& path) {
  TRY(const std::string text, read_input(path));
  const std::string name = path == "-" ? "standard input" : path;
  TRY(const Json body, parse_json(text, name));
  auto request = parse_chat(body);
  if (!request.ok()) return Error{request.error().code, name + ": " + request.error().what};
  return request;
}

ChatRequest wrap(const RunOptions& options, std::string text) {
  ChatRequest request;
  if (!options.system.empty()) {
    ChatMessage system;
    system.role = ChatRole::kSystem;
    system.content = {options.system};
    request.messages.push_back(std::move(system));
  }
  ChatMessage user;
  user.content = {std::move(text)};
  request.messages.push_back(std::move(user));
  return request;
}

Result<PromptSource> read_text_prompt(const RunOptions& options) {
  std::string text;
  if (options.prompt) {
    text = *options.prompt;
  } else {
    TRY(text, read_input(*options.prompt_file));
  }
  if (text.empty()) return Error{Code::kInvalid, "the prompt is empty: give some text"};
  if (!options.chat) return PromptSource(std::move(text));
  return PromptSource(wrap(options, std::move(text)));
}

}  // namespace

Result<PromptSource> read_prompt(const RunOptions& options) {
  if (options.ids) {
    TRY(std::vector<TokenId> ids, parse_ids(*options.ids));
    if (ids.empty()) return Error{Code::kInvalid, "--ids is empty: give at least one token id"};
    return PromptSource(std::move(ids));
  }
  PromptSource source;
  if (options.messages) {
    TRY(source, read_messages(*options.messages));
  } else {
    TRY(source, read_text_prompt(options));
  }
  if (auto* chat = std::get_if<ChatRequest>(&source)) {
    if (!options.reasoning_effort.empty()) chat->effort = options.reasoning_effort;
    if (options.no_thinking) chat->thinking = false;
  }
  return source;
}

Result<Prompt> tokenise(const PromptSource& source, const Tokenizer& tokenizer) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&source)) return Prompt{.ids = *ids};
  if (const auto* text = std::get_if<std::string>(&source)) {
    return Prompt{.ids = tokenizer.encode(*text)};
  }
  const auto& chat = std::get<ChatRequest>(source);
  TRY(const std::vector<Segment> segments, render_chat(chat));
  return Prompt{.ids = tokenizer.encode(segments),
                .form = chat.thinking ? ReplyForm::kThinking : ReplyForm::kAnswer};
}

}  // namespace sluice
