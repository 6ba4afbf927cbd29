#include "server/token_endpoints.h"

#include <utility>
#include <vector>

#include "server/api_error.h"
#include "server/fields.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"

namespace sluice {
namespace {

Result<std::vector<TokenId>> tokens_of(const Json& body, const Tokenizer& tokenizer) {
  const Fields fields(body);
  if (fields.has("messages")) {
    TRY(ChatPrompt prompt, chat_prompt(body, tokenizer));
    return std::move(prompt.ids);
  }
  TRY(const auto special, fields.boolean("parse_special"));
  for (const char* key : {"content", "prompt"}) {
    TRY(const auto text, fields.text(key));
    if (!text) continue;
    return special.value_or(false) ? tokenizer.encode_special(*text) : tokenizer.encode(*text);
  }
  return Error{Code::kInvalid, "content must be a string: the text to tokenize"};
}

}  // namespace

HttpResponse tokenize(const ApiContext& context, const std::string& body) {
  const auto json = parse_body(body);
  if (!json.ok()) return error_response(api_error(json.error(), Json()));
  const auto tokens = tokens_of(json.value(), context.loaded.tokenizer());
  if (!tokens.ok()) return error_response(api_error(tokens.error(), json.value()));
  const Json reply = {{"tokens", tokens.value()},
                      {"count", tokens.value().size()},
                      {"max_model_len", context.loaded.plan().context_positions}};
  return {.body = dump_json(reply) + "\n"};
}

HttpResponse detokenize(const ApiContext& context, const std::string& body) {
  const auto json = parse_body(body);
  if (!json.ok()) return error_response(api_error(json.error(), Json()));
  const Tokenizer& tokenizer = context.loaded.tokenizer();
  const auto ids =
      parse_token_ids(Fields(json.value()).get("tokens"), "tokens", tokenizer.vocab_size());
  if (!ids.ok()) return error_response(api_error(ids.error(), json.value()));
  const std::string text = tokenizer.decode(ids.value());
  return {.body = dump_json({{"content", text}, {"prompt", text}}) + "\n"};
}

}  // namespace sluice
