// POST /tokenize and /detokenize: text to token ids and back. Pure functions; thread-safe.
#pragma once

#include <string>

#include "server/api_context.h"
#include "server/http.h"

namespace sluice {

// {content} or {prompt}: a text, in which spellings of special tokens are text unless parse_special
// is true; or a chat's {messages, tools, ...}, as the chat endpoint would render it. Answers
// {tokens, count, max_model_len}.
HttpResponse tokenize(const ApiContext& context, const std::string& body);

// {tokens}: ids. Answers the text as `content` and as `prompt`.
HttpResponse detokenize(const ApiContext& context, const std::string& body);

}  // namespace sluice
