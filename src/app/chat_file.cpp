#include "app/chat_file.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/prompt.h"
#include "engine/private_file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChatBytesMax = 64 << 20;  // as a prompt
constexpr const char* kStateField = "sluice_state";

fs::path state_directory(const fs::path& file) { return file.string() + ".state"; }

// What the next prompt will begin with, for an engine to compare with what it knows: whatever the
// user says next comes after it.
Result<std::vector<TokenId>> next_prompt(const ChatHistory& history, const Engine& engine) {
  TRY(ChatRequest request, history.request(""));
  TRY(Prompt prompt, tokenise(PromptSource(std::move(request)), engine.tokenizer()));
  return std::move(prompt.ids);
}

// Removes states and pages that an earlier save of the same conversation has left.
void remove_others(const SavedState& kept) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kept.path.parent_path(), ignored)) {
    const fs::path& path = entry.path();
    const bool ours = path.extension() == ".state" || path.extension() == ".page";
    const bool needed = path == kept.path || std::ranges::count(kept.pages, path) > 0;
    if (ours && !needed) fs::remove(path, ignored);
  }
}

// A name in the state's directory, and no path to elsewhere.
bool is_state_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".state";
  if (!name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  return !name.empty() && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<SavedChat> save_chat(const fs::path& file, const ChatHistory& history, Engine& engine) {
  TRY(const std::vector<TokenId> prompt, next_prompt(history, engine));
  TRY(PrivateFile out, PrivateFile::create(file));
  Json body = history.json();
  body.erase(kStateField);
  SavedChat saved;
  std::optional<SavedState> state;
  if (engine.known_tokens(prompt) > 0) {
    auto written = engine.save_state(state_directory(file), prompt);
    if (written.ok()) {
      state = std::move(written).value();
      body[kStateField] = state->path.filename().string();
      saved.n_state_tokens = state->n_tokens;
      saved.state_bytes = state->bytes_written;
    } else {
      saved.state_error = written.error();
    }
  }
  const std::string text = dump_json(body) + "\n";
  TRY_OK(out.write(std::as_bytes(std::span(text))));
  TRY_OK(out.commit());
  if (state) remove_others(*state);
  return saved;
}

Result<LoadedChat> load_chat(const fs::path& file, Engine& engine) {
  TRY(const std::string text, read_text_file(file, kChatBytesMax));
  TRY(Json body, parse_json(text, file.string()));
  std::string state_name;
  if (body.is_object() && body.contains(kStateField) && body[kStateField].is_string()) {
    state_name = body[kStateField].get<std::string>();
  }
  if (body.is_object()) body.erase(kStateField);
  auto history = ChatHistory::from_json(std::move(body));
  if (!history.ok()) {
    return Error{history.error().code, file.string() + ": " + history.error().what};
  }
  LoadedChat loaded;
  loaded.history = std::move(history).value();
  if (!is_state_name(state_name)) return loaded;
  const auto n_tokens = engine.load_state(state_directory(file) / state_name);
  if (n_tokens.ok()) {
    loaded.n_state_tokens = n_tokens.value();
  } else {
    loaded.state_error = n_tokens.error();
  }
  return loaded;
}

}  // namespace sluice
