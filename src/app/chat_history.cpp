#include "app/chat_history.h"

#include <utility>

namespace sluice {
namespace {

Json user_message(std::string_view text) { return {{"role", "user"}, {"content", text}}; }

Json assistant_message(const GenerateReply& reply) {
  Json message = {{"role", "assistant"}, {"content", reply.text}};
  if (!reply.reasoning.empty()) message["reasoning_content"] = reply.reasoning;
  for (const ReplyCall& call : reply.tool_calls) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return message;
}

}  // namespace

Result<ChatHistory> ChatHistory::from_json(Json body) {
  const bool has_messages = body.is_object() && body.contains("messages");
  const bool is_new = has_messages && body["messages"].is_array() && body["messages"].empty();
  Json checked = body;
  if (is_new) checked["messages"].push_back(user_message(""));  // parse_chat wants one
  TRY_OK(parse_chat(checked));
  ChatHistory history;
  history.body_ = std::move(body);
  return history;
}

bool ChatHistory::has_system() const {
  const Json& messages = body_["messages"];
  return !messages.empty() && messages[0]["role"] == "system" && !messages[0].contains("tools");
}

void ChatHistory::set_system(std::string_view text) {
  Json& messages = body_["messages"];
  if (has_system()) messages.erase(0);
  if (text.empty()) return;
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
}

Status ChatHistory::set_effort(std::string_view effort) {
  const bool named = effort == "low" || effort == "high" || effort == "max";
  if (!named && effort != "none" && effort != "default") {
    return Error{Code::kInvalid, "the effort \"" + std::string(effort) +
                                     "\" is not one of low, high, max, none, default"};
  }
  body_.erase("reasoning_effort");
  body_.erase("thinking");
  if (named) body_["reasoning_effort"] = effort;
  if (effort == "none") body_["thinking"] = false;
  return Ok{};
}

void ChatHistory::reset() {
  const Json system = has_system() ? body_["messages"][0] : Json();
  body_["messages"] = Json::array();
  if (!system.is_null()) body_["messages"].push_back(system);
}

Result<ChatRequest> ChatHistory::request(std::string_view user_text) const {
  Json body = body_;
  body["messages"].push_back(user_message(user_text));
  return parse_chat(body);
}

void ChatHistory::add_turn(std::string_view user_text, const GenerateReply& reply) {
  Json& messages = body_["messages"];
  messages.push_back(user_message(user_text));
  messages.push_back(assistant_message(reply));
  // A model can write a call that no prompt can hold: a call's arguments must be an object.
  if (!parse_chat(body_).ok()) messages.back().erase("tool_calls");
}

}  // namespace sluice
