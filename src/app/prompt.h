// The prompt of `sluice run`: read and checked before the model is opened, tokenised after.
// Pure functions over files and standard input.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "app/options.h"
#include "base/error.h"
#include "base/ids.h"
#include "engine/reply_text.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace sluice {

// Raw text, token ids or a chat.
using PromptSource = std::variant<std::string, std::vector<TokenId>, ChatRequest>;

// Errors name the file or the option; an empty prompt is kInvalid.
Result<PromptSource> read_prompt(const RunOptions& options);

struct Prompt {
  std::vector<TokenId> ids;
  ReplyForm form = ReplyForm::kRaw;  // what the reply to it looks like
};

Result<Prompt> tokenise(const PromptSource& source, const Tokenizer& tokenizer);

}  // namespace sluice
