// A chat request and its rendering to K3's prompt format (spec 7.1 to 7.5).
// Pure functions over plain values; thread-safe.
//
// Text of users, tools and models only ever becomes non-markup segments, so it cannot yield a
// control token whatever it spells.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/segment.h"

namespace sluice {

struct ChatCall {
  std::string id;  // may be empty
  std::string name;
  // An object; or a string that is not valid JSON, rendered as it is.
  Json arguments = Json::object();
};

enum class ChatRole { kUser, kSystem, kAssistant, kTool, kOther };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string name;
  std::vector<std::string> content;  // a string, or the text of each part
  std::string reasoning;             // assistant
  std::vector<ChatCall> calls;       // assistant
  std::string tool;                  // tool: the function's name, if given
  std::string call_id;               // tool: the call it answers, if given
  Json tools;                        // system: a later declaration of tools, or null
};

enum class ToolChoice { kAuto, kNone, kRequired };
enum class ResponseFormat { kText, kJsonObject, kJsonSchema };

struct ChatRequest {
  std::vector<ChatMessage> messages;
  Json tools;  // array as sent, or null
  ToolChoice tool_choice = ToolChoice::kAuto;
  ResponseFormat response_format = ResponseFormat::kText;
  Json schema;                        // of kJsonSchema
  std::optional<std::string> effort;  // low, high or max; absent: no note is rendered
  bool thinking = true;
};

// Reads the chat fields of an OpenAI-shaped object: messages, tools, tool_choice, response_format,
// reasoning_effort, thinking. Other fields are the caller's. A message may carry `reasoning` for
// `reasoning_content`, and a call may be flat, {name, arguments}. kInvalid or kUnsupported names
// the field. Integers beyond 64 bits keep their digits in arguments given as a string; in an
// object the body's parser has made them doubles.
Result<ChatRequest> parse_chat(const Json& body);

// The prompt, up to the open channel in which the model goes on: think, or response without
// thinking.
Result<std::vector<Segment>> render_chat(const ChatRequest& request);

// The segments' texts joined: for display only, since tokenising it loses their borders.
std::string rendered_text(std::span<const Segment> segments);

}  // namespace sluice
