// POST /v1/completions: OpenAI's request to scheduled ones. Pure functions but for the submission;
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "server/api_context.h"
#include "server/generation_fields.h"
#include "server/http.h"
#include "text/tokenizer.h"

namespace sluice {

struct ParsedCompletion {
  std::vector<std::vector<TokenId>> prompts;  // at least one
  GenerationFields fields;
  std::optional<int64_t> logprobs;  // how many alternatives
  bool echo = false;
};

// A prompt is a string, an array of strings, an array of token ids or an array of such arrays. Text
// never becomes a control token; ids may be any. kInvalid and kUnsupported name the field.
Result<ParsedCompletion> parse_completion_body(const Json& body, const Tokenizer& tokenizer);

HttpReply completions(const ApiContext& context, const std::string& body);

// Token ids as JSON: kInvalid names `where` for what is none of this vocabulary.
Result<std::vector<TokenId>> parse_token_ids(const Json& ids, const std::string& where,
                                             int64_t vocab_size);

}  // namespace sluice
