// POST /v1/chat/completions: OpenAI's request to a scheduled one. Pure functions but for the
// submission; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/reply_text.h"
#include "server/api_context.h"
#include "server/fields.h"
#include "server/generation_fields.h"
#include "server/http.h"
#include "text/tokenizer.h"

namespace sluice {

// A chat's prompt in tokens.
struct ChatPrompt {
  std::vector<TokenId> ids;
  ReplyForm form = ReplyForm::kThinking;
};

// Reads messages, tools and the fields that shape the prompt; "developer" messages are system
// messages. kInvalid and kUnsupported name the field.
Result<ChatPrompt> chat_prompt(const Json& body, const Tokenizer& tokenizer);

// All that a body says. Everything that can be wrong with it is found here, but for what the engine
// bounds (context, token ids).
struct ParsedChat {
  ChatPrompt prompt;
  GenerationFields fields;
  std::optional<int64_t> logprobs;  // how many alternatives
};
Result<ParsedChat> parse_chat_body(const Json& body, const Tokenizer& tokenizer);

HttpReply chat_completions(const ApiContext& context, const std::string& body);

}  // namespace sluice
