// A conversation on the drive: FILE, the JSON that `sluice run --messages` reads too, and beside it
// the directory FILE.state with the state of its tokens, which saves computing them again. Both are
// for their owner alone. Functions over files; one owner.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/chat_history.h"
#include "base/error.h"
#include "engine/engine.h"

namespace sluice {

struct SavedChat {
  int64_t n_state_tokens = 0;        // 0: no state was worth writing
  uint64_t state_bytes = 0;          // written now
  std::optional<Error> state_error;  // the conversation is saved without its state
};
// kIo names the file that could not be written.
Result<SavedChat> save_chat(const std::filesystem::path& file, const ChatHistory& history,
                            Engine& engine);

struct LoadedChat {
  ChatHistory history;
  int64_t n_state_tokens = 0;
  std::optional<Error> state_error;  // the state is lost, which costs only time
};
// An error of the JSON file leaves the engine as it was.
Result<LoadedChat> load_chat(const std::filesystem::path& file, Engine& engine);

}  // namespace sluice
