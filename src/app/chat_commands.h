// The commands of a chat: lines that begin with a slash. One owner: the main thread.
#pragma once

#include <optional>
#include <string_view>

#include "app/chat_history.h"
#include "base/error.h"
#include "engine/engine.h"

namespace sluice {

// A chat between two lines.
struct ChatState {
  Engine& engine;
  ChatHistory history;
  std::optional<GenerateStats> last;  // of the last answer
};

enum class ChatAction { kGoOn, kExit };

inline bool is_chat_command(std::string_view line) { return line.starts_with('/'); }

// Runs a command and prints what it has to say. An error changes nothing and the chat goes on,
// unless standard output is gone (kIo of write_out, which the next answer meets too).
Result<ChatAction> run_chat_command(std::string_view line, ChatState& chat);

}  // namespace sluice
