#include "engine/reply_text.h"

#include <utility>

namespace sluice {

ReplyText::ReplyText(const Tokenizer& tokenizer, ReplyForm form,
                     std::vector<std::string> stop_strings)
    : decoder_(tokenizer), stops_(std::move(stop_strings)) {
  if (form != ReplyForm::kRaw) parser_.emplace(tokenizer, form == ReplyForm::kThinking);
}

TextDelta ReplyText::push(TokenId id) {
  if (!parser_) {
    TextDelta delta;
    feed_text(decoder_.push(id), delta);
    return delta;
  }
  parser_->push(id);
  return take_chat_deltas();
}

TextDelta ReplyText::finish() {
  TextDelta delta;
  if (parser_) {
    parser_->finish();
    delta = take_chat_deltas();
  } else {
    feed_text(decoder_.flush(), delta);
  }
  delta.text += stops_.flush();
  return delta;
}

TextDelta ReplyText::take_chat_deltas() {
  TextDelta delta;
  for (const ReplyDelta& part : parser_->take_deltas()) {
    switch (part.kind) {
      case ReplyDelta::Kind::kReasoning:
        delta.reasoning += part.text;
        break;
      case ReplyDelta::Kind::kContent:
        feed_text(part.text, delta);
        break;
      case ReplyDelta::Kind::kCallBegin: {
        const ReplyCall& call = parser_->reply().calls[part.call];
        delta.calls.push_back(
            {.call = part.call, .begins = true, .id = call.id, .name = call.name});
        break;
      }
      case ReplyDelta::Kind::kArguments:
        delta.calls.push_back({.call = part.call, .arguments = part.text});
        break;
    }
  }
  return delta;
}

void ReplyText::feed_text(std::string_view text, TextDelta& delta) {
  delta.text_bytes += text.size();
  delta.text += stops_.feed(text);
}

std::vector<ReplyCall> ReplyText::tool_calls() const {
  return parser_ ? parser_->reply().calls : std::vector<ReplyCall>{};
}

}  // namespace sluice
