// A model opened and ready: checkpoint, memory plan, model, tokenizer and one sequence. One owner.
// Several engines may live in one process. Nothing outlasts a request: after an error or a cancel
// the next one runs as if it were the first.
#pragma once

#include <atomic>
#include <cstdint>
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

  // Every intermediate tensor of one pass over `prompt`, logits of all its rows, and the state
  // after it. kBudget when the prompt does not fit one pass. For diagnosis: takes memory beyond the
  // plan.
  Result<Capture> capture(std::span<const TokenId> prompt, const std::atomic<bool>* cancel);

  const Config& config() const;
  const Tokenizer& tokenizer() const;
  const EnginePlan& plan() const;
  bool direct() const;  // whether reads bypass the page cache

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
