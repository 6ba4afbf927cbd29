// Reads OpenAI-shaped JSON into a ChatRequest; everything is checked here and trusted afterwards.
#include <string>
#include <string_view>
#include <utility>

#include "text/chat.h"
#include "text/python_json.h"
#include "text/unicode.h"

namespace sluice {
namespace {

Error invalid(const std::string& where, const std::string& problem) {
  return Error{Code::kInvalid, where + " " + problem};
}

// The field's value; null stands for an absent field.
const Json& field(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

Result<std::string> string_field(const Json& object, const char* key, const std::string& where) {
  const Json& value = field(object, key);
  if (value.is_null()) return std::string();
  if (!value.is_string()) return invalid(where + "." + key, "must be a string");
  return value.get<std::string>();
}

// The first of two fields that is a string with anything in it.
Result<std::string> either_field(const Json& object, const char* a, const char* b,
                                 const std::string& where) {
  TRY(std::string first, string_field(object, a, where));
  if (!first.empty()) return first;
  return string_field(object, b, where);
}

Result<std::string> part_text(const Json& part, const std::string& where) {
  if (!part.is_object()) return invalid(where, "must be an object with a type");
  TRY(const std::string type, string_field(part, "type", where));
  if (type == "text") return string_field(part, "text", where);
  if (type == "image" || type == "image_url") {
    return Error{Code::kUnsupported,
                 where + " is an image, and images are not supported yet; send text"};
  }
  return Error{Code::kUnsupported,
               where + " has the type \"" + type + "\"; only text parts are supported"};
}

Result<std::vector<std::string>> parse_content(const Json& content, const std::string& where) {
  std::vector<std::string> texts;
  if (content.is_null()) return texts;
  if (content.is_string()) {
    texts.push_back(content.get<std::string>());
    return texts;
  }
  if (!content.is_array()) return invalid(where, "must be a string or an array of parts");
  for (size_t i = 0; i < content.size(); ++i) {
    TRY(std::string text, part_text(content[i], where + "[" + std::to_string(i) + "]"));
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<Json> parse_arguments(const Json& arguments, const std::string& where) {
  if (arguments.is_null()) return Json::object();
  if (arguments.is_object()) return arguments;
  if (!arguments.is_string()) return invalid(where, "must be an object or a string of JSON");
  const auto& text = arguments.get_ref<const std::string&>();
  if (is_blank(text)) return Json::object();
  auto parsed = parse_python_json(text);
  if (!parsed.ok()) return arguments;
  if (!parsed.value().is_object()) {
    return invalid(where, "is JSON but not an object; a call's arguments must be an object");
  }
  return std::move(parsed).value();
}

Result<ChatCall> parse_call(const Json& call, const std::string& where) {
  if (!call.is_object()) return invalid(where, "must be an object");
  const Json& nested = field(call, "function");
  if (!nested.is_null() && !nested.is_object())
    return invalid(where + ".function", "must be an object");
  const Json& function = nested.is_null() ? call : nested;
  ChatCall parsed;
  TRY(parsed.id, string_field(call, "id", where));
  TRY(parsed.name, string_field(function, "name", where));
  if (parsed.name.empty()) return invalid(where, "has no function name");
  TRY(parsed.arguments, parse_arguments(field(function, "arguments"), where + ".arguments"));
  return parsed;
}

Result<std::vector<ChatCall>> parse_calls(const Json& calls, const std::string& where) {
  std::vector<ChatCall> parsed;
  if (calls.is_null()) return parsed;
  if (!calls.is_array()) return invalid(where, "must be an array");
  for (size_t i = 0; i < calls.size(); ++i) {
    TRY(ChatCall call, parse_call(calls[i], where + "[" + std::to_string(i) + "]"));
    parsed.push_back(std::move(call));
  }
  return parsed;
}

Result<Json> parse_tools(const Json& tools, const std::string& where) {
  if (!tools.is_null() && !tools.is_array()) return invalid(where, "must be an array");
  return tools;
}

ChatRole role_of(const std::string& role) {
  if (role == "user") return ChatRole::kUser;
  if (role == "system") return ChatRole::kSystem;
  if (role == "assistant") return ChatRole::kAssistant;
  if (role == "tool") return ChatRole::kTool;
  return ChatRole::kOther;
}

Result<ChatMessage> parse_message(const Json& message, const std::string& where) {
  if (!message.is_object()) return invalid(where, "must be an object");
  const Json& role = field(message, "role");
  if (!role.is_string()) return invalid(where + ".role", "must be a string");
  ChatMessage parsed;
  parsed.role = role_of(role.get_ref<const std::string&>());
  if (parsed.role == ChatRole::kOther) return parsed;
  TRY(parsed.name, string_field(message, "name", where));
  TRY(parsed.tools, parse_tools(field(message, "tools"), where + ".tools"));
  TRY(parsed.content, parse_content(field(message, "content"), where + ".content"));
  if (parsed.role == ChatRole::kAssistant) {
    TRY(parsed.reasoning, either_field(message, "reasoning_content", "reasoning", where));
    TRY(parsed.calls, parse_calls(field(message, "tool_calls"), where + ".tool_calls"));
  }
  if (parsed.role == ChatRole::kTool) {
    TRY(parsed.tool, either_field(message, "tool", "name", where));
    TRY(parsed.call_id, either_field(message, "tool_call_id", "id", where));
  }
  return parsed;
}

Result<ToolChoice> parse_tool_choice(const Json& choice) {
  if (choice.is_null() || choice == "auto") return ToolChoice::kAuto;
  if (choice == "none") return ToolChoice::kNone;
  if (choice == "required") return ToolChoice::kRequired;
  if (!choice.is_object())
    return invalid("tool_choice", "must be \"auto\", \"none\" or \"required\"");
  const Json& function = field(choice, "function");
  const Json& name = function.is_object() ? field(function, "name") : field(choice, "name");
  return Error{Code::kUnsupported,
               "tool_choice cannot force one function (" +
                   (name.is_string() ? "\"" + name.get<std::string>() + "\"" : dump_json(choice)) +
                   "): K3's prompt format has no such note; use \"required\""};
}

Status parse_response_format(const Json& format, ChatRequest& request) {
  if (format.is_null()) return Ok{};
  if (!format.is_object()) return invalid("response_format", "must be an object with a type");
  const Json& type = field(format, "type");
  if (type == "text") return Ok{};
  if (type == "json_object") {
    request.response_format = ResponseFormat::kJsonObject;
    return Ok{};
  }
  if (type != "json_schema") {
    return invalid("response_format.type", "must be \"text\", \"json_object\" or \"json_schema\"");
  }
  const Json& outer = field(format, "json_schema");
  if (!outer.is_object()) return invalid("response_format.json_schema", "must be an object");
  request.response_format = ResponseFormat::kJsonSchema;
  request.schema = outer;
  for (const char* key : {"schema", "json_schema"}) {
    if (const Json& inner = field(outer, key); !inner.is_null()) {
      request.schema = inner;
      break;
    }
  }
  return Ok{};
}

Status parse_thinking(const Json& body, ChatRequest& request) {
  if (const Json& thinking = field(body, "thinking"); !thinking.is_null()) {
    if (!thinking.is_boolean()) return invalid("thinking", "must be true or false");
    request.thinking = thinking.get<bool>();
  }
  const Json& effort = field(body, "reasoning_effort");
  if (effort.is_null()) return Ok{};
  if (effort == "low" || effort == "high" || effort == "max") {
    request.effort = effort.get<std::string>();
    return Ok{};
  }
  if (effort == "medium") {
    return invalid(
        "reasoning_effort",
        "\"medium\" is not accepted: K3's own encoder rejects it although its prompt text "
        "lists it; use \"low\", \"high\" or \"max\"");
  }
  if (effort == "none") {
    return invalid("reasoning_effort",
                   "\"none\" is not an effort; to turn thinking off send \"thinking\": false");
  }
  return invalid("reasoning_effort", "must be \"low\", \"high\" or \"max\"");
}

}  // namespace

Result<ChatRequest> parse_chat(const Json& body) {
  if (!body.is_object()) return invalid("the request", "must be a JSON object");
  ChatRequest request;
  const Json& messages = field(body, "messages");
  if (!messages.is_array() || messages.empty()) {
    return invalid("messages", "must be an array with at least one message");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    TRY(ChatMessage message, parse_message(messages[i], "messages[" + std::to_string(i) + "]"));
    request.messages.push_back(std::move(message));
  }
  TRY(request.tools, parse_tools(field(body, "tools"), "tools"));
  TRY(request.tool_choice, parse_tool_choice(field(body, "tool_choice")));
  TRY_OK(parse_response_format(field(body, "response_format"), request));
  TRY_OK(parse_thinking(body, request));
  return request;
}

}  // namespace sluice
