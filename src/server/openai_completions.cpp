#include "server/openai_completions.h"

#include <algorithm>
#include <utility>

#include "server/completion_format.h"
#include "server/fields.h"
#include "server/replies.h"
#include "server/submission.h"

namespace sluice {
namespace {

constexpr int64_t kMaxTokensDefault = 16;  // as OpenAI has it

Error wrong(const std::string& what) { return Error{Code::kInvalid, what}; }

Result<std::vector<std::vector<TokenId>>> parse_prompts(const Json& prompt,
                                                        const Tokenizer& tokenizer) {
  constexpr const char* kForms =
      "prompt must be a string, an array of strings, an array of token ids or an array of arrays "
      "of token ids";
  std::vector<std::vector<TokenId>> prompts;
  if (prompt.is_string()) {
    prompts.push_back(tokenizer.encode(prompt.get_ref<const std::string&>()));
    return prompts;
  }
  if (!prompt.is_array()) return wrong(kForms);
  if (prompt.empty()) return wrong("prompt must not be empty");
  if (prompt.front().is_number()) {
    TRY(auto ids, parse_token_ids(prompt, "prompt", tokenizer.vocab_size()));
    prompts.push_back(std::move(ids));
    return prompts;
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    const std::string where = "prompt[" + std::to_string(i) + "]";
    if (prompt[i].is_string()) {
      prompts.push_back(tokenizer.encode(prompt[i].get_ref<const std::string&>()));
    } else if (prompt[i].is_array()) {
      TRY(auto ids, parse_token_ids(prompt[i], where, tokenizer.vocab_size()));
      prompts.push_back(std::move(ids));
    } else {
      return wrong(kForms);
    }
  }
  return prompts;
}

Status refuse_unsupported(const Fields& fields, int64_t n) {
  TRY(const auto suffix, fields.text("suffix"));
  if (suffix && !suffix->empty()) {
    return Error{Code::kUnsupported, "suffix is not supported: the model only goes on"};
  }
  TRY(const auto best_of, fields.integer("best_of", 1, kChoicesMax));
  if (best_of && *best_of != n) {
    return Error{Code::kUnsupported,
                 "best_of is not supported beyond n: every choice that is made is returned"};
  }
  return Ok{};
}

}  // namespace

Result<std::vector<TokenId>> parse_token_ids(const Json& ids, const std::string& where,
                                             int64_t vocab_size) {
  std::vector<TokenId> out;
  if (!ids.is_array()) return wrong(where + " must be an array of token ids");
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id < 0 || id >= vocab_size) {
      return wrong(where + " must hold token ids between 0 and " + std::to_string(vocab_size - 1));
    }
    out.push_back(id.get<TokenId>());
  }
  return out;
}

Result<ParsedCompletion> parse_completion_body(const Json& body, const Tokenizer& tokenizer) {
  const Fields fields(body);
  ParsedCompletion parsed;
  TRY(parsed.fields, parse_generation(fields));
  TRY_OK(refuse_unsupported(fields, parsed.fields.n));
  if (!parsed.fields.max_tokens) parsed.fields.max_tokens = kMaxTokensDefault;
  TRY(parsed.logprobs, fields.integer("logprobs", 0, kTopLogprobsMax));
  TRY(const auto echo, fields.boolean("echo"));
  parsed.echo = echo.value_or(false);
  TRY(parsed.prompts, parse_prompts(fields.get("prompt"), tokenizer));
  for (const auto& prompt : parsed.prompts) {
    if (prompt.empty()) return wrong("prompt must hold at least one token");
  }
  return parsed;
}

HttpReply completions(const ApiContext& context, const std::string& body) {
  const auto json = parse_body(body);
  if (!json.ok()) return error_response(api_error(json.error(), Json()));
  auto parse = parse_completion_body(json.value(), context.loaded.tokenizer());
  if (!parse.ok()) return error_response(api_error(parse.error(), json.value()));
  ParsedCompletion& parsed = parse.value();
  std::vector<ServeRequest> requests;
  std::vector<std::vector<TokenId>> prompts;  // of each choice
  for (const std::vector<TokenId>& prompt : parsed.prompts) {
    ServeRequest& request = requests.emplace_back();
    request.tokens.prompt = prompt;
    request.tokens.sampling = parsed.fields.sampling;
    request.stop_strings = parsed.fields.stop;
    request.logprobs = parsed.logprobs;
    request.prompt_logprobs = parsed.echo && parsed.logprobs.has_value();
    for (int64_t i = 0; i < parsed.fields.n; ++i) prompts.push_back(prompt);
  }
  ApiError refusal;
  auto group = submit_choices(context, "cmpl-", parsed.fields, std::move(requests), refusal);
  if (!group) return error_response(refusal);
  auto format = std::make_unique<CompletionFormat>(
      reply_names(context, group->id()), std::move(prompts),
      CompletionFormat::Options{.logprobs = parsed.logprobs.has_value(),
                                .echo = parsed.echo,
                                .include_usage = parsed.fields.include_usage},
      context.loaded.tokenizer());
  return make_reply(context, std::move(group), std::move(format),
                    {.stream = parsed.fields.stream, .progress = parsed.fields.include_progress});
}

}  // namespace sluice
