// Renders a ChatRequest. The texts quoted here are the wire format, byte for byte (spec 7.3).
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/chat.h"
#include "text/python_json.h"
#include "text/unicode.h"

namespace sluice {
namespace {

constexpr std::string_view kToolsHead =
    "# Tools\nHere are the available tools, described in JSONSchema.\n\n";
constexpr std::string_view kMoreToolsHead =
    "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n"
    "You have access to all existing and extended tools.\n"
    "Here are the specs for the extended tools.\n\n";
constexpr std::string_view kEffortHead =
    "`thinking_effort` guides on how much to think in your thinking channel (not including the "
    "response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort=";
constexpr std::string_view kMustCall =
    "The system is invoked with `tool_choice=required`.\n"
    "You MUST call tools in the next message.";
constexpr std::string_view kMustNotCall =
    "The system is invoked with `tool_choice=none`.\n"
    "You MUST NOT call any tools in the next message.";
constexpr std::string_view kRawJson =
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional "
    "formatting.";

struct Attribute {
  std::string_view key;
  std::string value;
};

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Collects segments; spec 7.1 says which pieces an element has.
class Writer {
 public:
  void text(std::string_view text) {
    if (!text.empty()) segments_.push_back(Segment{std::string(text), /*markup=*/false});
  }

  void open(std::string_view tag, const std::vector<Attribute>& attributes = {}) {
    markup("<|open|>");
    text(tag);
    for (const Attribute& attribute : attributes) {
      text(" " + std::string(attribute.key));
      text("=\"");
      text(escaped(attribute.value));
      text("\"");
    }
    markup("<|sep|>");
  }

  void close(std::string_view tag) {
    markup("<|close|>");
    text(tag);
    markup("<|sep|>");
  }

  void end_message() {
    close("message");
    markup("<|end_of_msg|>");
  }

  void note(std::string_view type, std::string_view body) {
    open("message", {{"role", "system"}, {"type", std::string(type)}});
    text(body);
    end_message();
  }

  std::vector<Segment> take() { return std::move(segments_); }

 private:
  void markup(const char* spelling) { segments_.push_back(Segment{spelling, /*markup=*/true}); }

  std::vector<Segment> segments_;
};

std::string fenced_json(const Json& value) {
  return "```json\n" + python_json(value, JsonStyle::kCompactSorted) + "\n```";
}

void declare_tools(std::string_view head, const Json& tools, Writer& out) {
  out.note("tool-declare", std::string(head) + fenced_json(tools));
}

bool has_tools(const Json& tools) { return tools.is_array() && !tools.empty(); }

void render_contents(const ChatMessage& message, Writer& out) {
  for (const std::string& text : message.content) out.text(text);
}

const char* type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_string()) return "string";
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  return "number";  // a binary too: an integer beyond 64 bits (text/python_json.h)
}

void render_arguments(const Json& arguments, Writer& out) {
  if (arguments.is_string()) {
    out.open("json", {{"type", "object"}});
    out.text(arguments.get_ref<const std::string&>());
    out.close("json");
    return;
  }
  for (const auto& [key, value] : arguments.items()) {
    out.open("argument", {{"key", key}, {"type", type_of(value)}});
    out.text(value.is_string() ? value.get_ref<const std::string&>()
                               : python_json(value, JsonStyle::kSpaced));
    out.close("argument");
  }
}

void render_calls(const std::vector<ChatCall>& calls, Writer& out) {
  if (calls.empty()) return;
  out.open("tools");
  for (size_t i = 0; i < calls.size(); ++i) {
    out.open("call", {{"tool", calls[i].name}, {"index", std::to_string(i + 1)}});
    render_arguments(calls[i].arguments, out);
    out.close("call");
  }
  out.close("tools");
}

void render_assistant(const ChatMessage& message, bool thinking, Writer& out) {
  std::vector<Attribute> attributes = {{"role", "assistant"}};
  if (!message.name.empty()) attributes.push_back({"name", message.name});
  out.open("message", attributes);
  if (thinking) {
    out.open("think");
    if (!is_blank(message.reasoning)) out.text(message.reasoning);
    out.close("think");
  }
  out.open("response");
  render_contents(message, out);
  out.close("response");
  render_calls(message.calls, out);
  out.end_message();
}

struct ToolResult {
  const ChatMessage* message;
  size_t call;  // position of the call it answers
};

// A run of consecutive tool messages, each with its call. They are in the order of the calls if
// every one names its call by id; otherwise nothing, and the run stays as it is.
std::optional<std::vector<ToolResult>> ordered_results(std::span<const ChatMessage> run,
                                                       std::span<const ChatCall> calls) {
  std::unordered_map<std::string_view, size_t> call_of_id;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].id.empty()) call_of_id.emplace(calls[i].id, i);
  }
  std::vector<ToolResult> results;
  for (const ChatMessage& message : run) {
    const auto call = call_of_id.find(message.call_id);
    if (call == call_of_id.end()) return std::nullopt;
    results.push_back({&message, call->second});
  }
  std::sort(results.begin(), results.end(), [](const ToolResult& a, const ToolResult& b) {
    return std::pair(a.call, a.message) < std::pair(b.call, b.message);
  });
  return results;
}

// Renders the messages in order and remembers the last assistant message, which tool messages
// refer to.
class Conversation {
 public:
  Conversation(bool thinking, Writer& out) : thinking_(thinking), out_(out) {}

  Status render(std::span<const ChatMessage> messages) {
    for (size_t i = 0; i < messages.size();) {
      size_t end = i;
      while (end < messages.size() && messages[end].role == ChatRole::kTool) ++end;
      if (end > i) {
        TRY_OK(tool_run(messages.subspan(i, end - i), i));
        i = end;
      } else {
        one(messages[i++]);
      }
    }
    return Ok{};
  }

 private:
  void one(const ChatMessage& message) {
    if (message.role == ChatRole::kOther) return;
    if (message.role == ChatRole::kAssistant) {
      calls_ = message.calls;
      results_ = 0;
      render_assistant(message, thinking_, out_);
      return;
    }
    if (message.role == ChatRole::kSystem && has_tools(message.tools)) {
      declare_tools(kMoreToolsHead, message.tools, out_);
      return;
    }
    std::vector<Attribute> attributes = {
        {"role", message.role == ChatRole::kSystem ? "system" : "user"}};
    if (!message.name.empty()) attributes.push_back({"name", message.name});
    out_.open("message", attributes);
    render_contents(message, out_);
    out_.end_message();
  }

  // `first` is the position of the run's first message, for errors.
  Status tool_run(std::span<const ChatMessage> run, size_t first) {
    if (const auto ordered = ordered_results(run, calls_)) {
      for (const ToolResult& result : *ordered) {
        tool_result(*result.message, calls_[result.call].name);
      }
      return Ok{};
    }
    for (size_t i = 0; i < run.size(); ++i) {
      std::string tool = run[i].tool;
      if (tool.empty() && results_ < calls_.size()) tool = calls_[results_].name;
      if (tool.empty()) {
        return Error{Code::kInvalid, "messages[" + std::to_string(first + i) +
                                         "] is a tool result that names no tool and answers no "
                                         "call; give it a tool_call_id or a name"};
      }
      tool_result(run[i], tool);
    }
    return Ok{};
  }

  void tool_result(const ChatMessage& message, const std::string& tool) {
    ++results_;
    out_.open("message", {{"role", "tool"}, {"tool", tool}, {"index", std::to_string(results_)}});
    render_contents(message, out_);
    out_.end_message();
  }

  const bool thinking_;
  Writer& out_;
  std::span<const ChatCall> calls_;  // of the last assistant message
  size_t results_ = 0;               // tool messages since then
};

void render_response_format(const ChatRequest& request, Writer& out) {
  if (request.response_format == ResponseFormat::kText) return;
  const bool schema = request.response_format == ResponseFormat::kJsonSchema;
  std::string body = std::string("The system is invoked with `response_format=") +
                     (schema ? "json_schema" : "json_object") + "`.\n" + std::string(kRawJson);
  if (schema) {
    body += "\nThe JSON data must match the following schema:\n" + fenced_json(request.schema);
  }
  out.note("response-format", body);
}

}  // namespace

Result<std::vector<Segment>> render_chat(const ChatRequest& request) {
  Writer out;
  if (has_tools(request.tools)) declare_tools(kToolsHead, request.tools, out);
  if (request.thinking && request.effort) {
    out.note("thinking-effort", std::string(kEffortHead) + *request.effort + "`.");
  }
  TRY_OK(Conversation(request.thinking, out).render(request.messages));
  if (request.tool_choice == ToolChoice::kRequired) out.note("tool-choice", kMustCall);
  if (request.tool_choice == ToolChoice::kNone) out.note("tool-choice", kMustNotCall);
  render_response_format(request, out);
  out.open("message", {{"role", "assistant"}});
  out.open(request.thinking ? "think" : "response");
  return out.take();
}

std::string rendered_text(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

}  // namespace sluice
