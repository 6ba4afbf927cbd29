#include "server/openai_chat.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "server/chat_format.h"
#include "server/replies.h"
#include "server/submission.h"
#include "text/chat.h"

namespace sluice {
namespace {

Error wrong(const std::string& what) { return Error{Code::kInvalid, what}; }
Error unsupported(const std::string& what) { return Error{Code::kUnsupported, what}; }

Status refuse_unsupported(const Fields& fields) {
  TRY_OK(refuse_field(fields, "functions", "send tools instead"));
  TRY_OK(refuse_field(fields, "function_call", "send tool_choice instead"));
  TRY_OK(refuse_field(fields, "audio", "the model makes text only"));
  TRY_OK(refuse_field(fields, "prediction", "there is nothing that it would speed up"));
  TRY_OK(refuse_field(fields, "web_search_options", "the server reaches no network"));
  TRY(const auto parallel, fields.boolean("parallel_tool_calls"));
  if (parallel && !*parallel) {
    return unsupported(
        "parallel_tool_calls cannot be false: K3's prompt format has no word for it; leave it out");
  }
  const Json& modalities = fields.get("modalities");
  if (!modalities.is_null() && modalities != Json::array({"text"})) {
    return unsupported("modalities may only be [\"text\"]: the model makes text only");
  }
  const Json& format = fields.get("response_format");
  if (format.is_object() && format.contains("json_schema") && format["json_schema"].is_object() &&
      Fields(format["json_schema"]).get("strict") == true) {
    return unsupported(
        "response_format.json_schema.strict cannot be true: nothing forces the reply to follow the "
        "schema; send false, and the model is told to");
  }
  return Ok{};
}

// What K3's encoder would pass over in silence is refused here: a message must not vanish.
Status check_roles(Json& body) {
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array())
    return Ok{};  // parse_chat says what is wrong
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  for (size_t i = 0; i < messages->size(); ++i) {
    Json& message = (*messages)[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) continue;
    const auto role = message["role"].get<std::string>();
    if (role == "developer")
      message["role"] = "system";
    else if (std::ranges::find(kRoles, role) == kRoles.end()) {
      return wrong("messages[" + std::to_string(i) + "].role must be system, developer, user, " +
                   "assistant or tool, not \"" + role + "\"");
    }
  }
  return Ok{};
}

Status check_tools(const Fields& fields) {
  const Json& tools = fields.get("tools");
  if (tools.is_array()) {
    for (size_t i = 0; i < tools.size(); ++i) {
      const std::string where = "tools[" + std::to_string(i) + "]";
      const Json& tool = tools[i];
      if (!tool.is_object()) return wrong(where + " must be an object");
      if (Fields(tool).get("type") != "function") {
        return unsupported(where + ".type must be \"function\"");
      }
      const Json& function = Fields(tool).get("function");
      if (!function.is_object() || !Fields(function).get("name").is_string()) {
        return wrong(where + ".function must be an object with a name");
      }
    }
  }
  const bool none = !tools.is_array() || tools.empty();
  if (none && fields.get("tool_choice") == "required") {
    return wrong("tool_choice \"required\" needs tools");
  }
  return Ok{};
}

Result<std::optional<int64_t>> parse_logprobs(const Fields& fields) {
  TRY(const auto wanted, fields.boolean("logprobs"));
  TRY(const auto top, fields.integer("top_logprobs", 0, kTopLogprobsMax));
  if (top && !wanted.value_or(false)) return wrong("top_logprobs needs logprobs: true");
  if (!wanted.value_or(false)) return std::optional<int64_t>();
  return std::optional(top.value_or(0));
}

Status parse_limit(const Fields& fields, GenerationFields& out) {
  TRY(const auto limit,
      fields.integer("max_completion_tokens", 1, std::numeric_limits<int64_t>::max()));
  if (limit && out.max_tokens) {
    return wrong("max_completion_tokens and max_tokens exclude each other; send one of them");
  }
  if (limit) out.max_tokens = limit;
  if (out.max_tokens == 0) return wrong("max_tokens must be at least 1");
  return Ok{};
}

}  // namespace

Result<ChatPrompt> chat_prompt(const Json& body, const Tokenizer& tokenizer) {
  Json read = body;
  TRY_OK(check_roles(read));
  TRY_OK(check_tools(Fields(read)));
  TRY(const ChatRequest request, parse_chat(read));
  TRY(const std::vector<Segment> segments, render_chat(request));
  return ChatPrompt{.ids = tokenizer.encode(segments),
                    .form = request.thinking ? ReplyForm::kThinking : ReplyForm::kAnswer};
}

Result<ParsedChat> parse_chat_body(const Json& body, const Tokenizer& tokenizer) {
  const Fields fields(body);
  TRY_OK(refuse_unsupported(fields));
  ParsedChat parsed;
  TRY(parsed.fields, parse_generation(fields));
  TRY_OK(parse_limit(fields, parsed.fields));
  TRY(parsed.logprobs, parse_logprobs(fields));
  TRY(parsed.prompt, chat_prompt(body, tokenizer));
  return parsed;
}

HttpReply chat_completions(const ApiContext& context, const std::string& body) {
  const auto json = parse_body(body);
  if (!json.ok()) return error_response(api_error(json.error(), Json()));
  auto parsed = parse_chat_body(json.value(), context.loaded.tokenizer());
  if (!parsed.ok()) return error_response(api_error(parsed.error(), json.value()));
  GenerationFields& fields = parsed.value().fields;
  const ServeRequest request{
      .tokens = {.prompt = std::move(parsed.value().prompt.ids), .sampling = fields.sampling},
      .stop_strings = fields.stop,
      .form = parsed.value().prompt.form,
      .logprobs = parsed.value().logprobs};
  ApiError refusal;
  auto group = submit_choices(context, "chatcmpl-", fields, {request}, refusal);
  if (!group) return error_response(refusal);
  auto format =
      std::make_unique<ChatFormat>(reply_names(context, group->id()), group->size(),
                                   ChatFormat::Options{.logprobs = request.logprobs.has_value(),
                                                       .include_usage = fields.include_usage},
                                   context.loaded.tokenizer());
  return make_reply(context, std::move(group), std::move(format),
                    {.stream = fields.stream, .progress = fields.include_progress});
}

}  // namespace sluice
