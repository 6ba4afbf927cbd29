// A model opened and ready: checkpoint, memory plan, model, tokenizer and one sequence. One owner.
// Several engines may live in one process. What outlasts a request is only time saved: one that
// goes on from the tokens of the last computes the rest, with the bits of a run from the start,
// after an error or a cancel too.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/generate.h"
#include "engine/options.h"
#include "engine/plan.h"
#include "engine/reply_text.h"
#include "engine/state_file.h"
#include "model/capture.h"
#include "text/tokenizer.h"

namespace sluice {

struct GenerateRequest {
  // The checkpoint's own end token is a stop id without being listed.
  TokenRequest tokens = {};
  // The text ends before the first of them; in a chat only the answer's content is searched.
  std::vector<std::string> stop_strings = {};
  ReplyForm form = ReplyForm::kRaw;
};

struct GenerateReply {
  std::vector<TokenId> ids;  // all that were made, the stop id included
  std::string text;          // raw: the decoded ids, special tokens as spelled; chat: the content
  std::string reasoning;     // chat only
  std::vector<ReplyCall> tool_calls;  // chat only
  FinishReason finish = FinishReason::kLength;
  std::optional<Error> error;  // set when finish is kError
  GenerateStats stats;
};

// Called with each piece of text as it becomes certain.
using OnText = std::function<void(const TextDelta&)>;

class Engine {
 public:
  // Reads the checkpoint, makes the plan (kBudget names the floor) and loads what it pins.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  ~Engine();

  // Runs one request to its end. An error, before or during it, is in the reply. `cancel` may be
  // null.
  GenerateReply generate(const GenerateRequest& request, const std::atomic<bool>* cancel,
                         const OnText& on_text);

  // How many tokens of `prompt` generate() would not compute again.
  int64_t known_tokens(std::span<const TokenId> prompt) const;
  // Writes the state from which generate(prompt) would go on into `directory` (state_file.h). kIo.
  Result<SavedState> save_state(const std::filesystem::path& directory,
                                std::span<const TokenId> prompt);
  // Takes over a saved state and returns the number of its tokens; prompts that begin with them go
  // on from it. Errors as state_file.h; nothing is known after one.
  Result<int64_t> load_state(const std::filesystem::path& file);

  // Every intermediate tensor of one pass over `prompt`, logits of all its rows, and the state
  // after it. kBudget when the prompt does not fit one pass. For diagnosis: takes memory beyond the
  // plan.
  Result<Capture> capture(std::span<const TokenId> prompt, const std::atomic<bool>* cancel);

  const Config& config() const;
  const Tokenizer& tokenizer() const;
  const EnginePlan& plan() const;
  bool direct() const;  // whether reads bypass the page cache
  const GeneratedModel* emulated() const;  // on whose drives the model lies, or null

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
