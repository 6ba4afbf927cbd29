// A conversation: the messages so far and what holds for all of them, as the OpenAI-shaped object
// that `sluice run --messages` takes too. A value; one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"
#include "text/chat.h"

namespace sluice {

class ChatHistory {
 public:
  ChatHistory() = default;
  // kInvalid names what is wrong with `body`, as parse_chat does.
  static Result<ChatHistory> from_json(Json body);
  const Json& json() const { return body_; }

  bool empty() const { return body_["messages"].empty(); }
  size_t size() const { return body_["messages"].size(); }

  // The first message, if it is a system message; empty text takes it away.
  void set_system(std::string_view text);
  // low, high, max; none: no thinking channel; default: thinking, and nothing said about it.
  Status set_effort(std::string_view effort);
  // Forgets all messages but the system's.
  void reset();

  // The request that a user's next message would be.
  Result<ChatRequest> request(std::string_view user_text) const;
  // Takes in a message and its reply, whole or cut.
  void add_turn(std::string_view user_text, const GenerateReply& reply);

 private:
  bool has_system() const;

  Json body_ = {{"messages", Json::array()}};
};

}  // namespace sluice
