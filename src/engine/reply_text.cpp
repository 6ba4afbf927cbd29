#include "engine/reply_text.h"

#include <utility>

namespace sluice {

ReplyText::ReplyText(const Tokenizer& tokenizer, ReplyForm form,
                     std::vector<std::string> stop_strings)
    : decoder_(tokenizer), stops_(std::move(stop_strings)) {
  if (form != ReplyForm::kRaw) parser_.emplace(tokenizer, form == ReplyForm::kThinking);
}

TextDelta ReplyText::push(TokenId id) {
  if (!parser_) return {.reasoning = {}, .text = stops_.feed(decoder_.push(id))};
  parser_->push(id);
  return take_chat_deltas();
}

TextDelta ReplyText::finish() {
  TextDelta delta;
  if (parser_) {
    parser_->finish();
    delta = take_chat_deltas();
  } else {
    delta.text = stops_.feed(decoder_.flush());
  }
  delta.text += stops_.flush();
  return delta;
}

TextDelta ReplyText::take_chat_deltas() {
  TextDelta delta;
  for (const ReplyDelta& part : parser_->take_deltas()) {
    if (part.kind == ReplyDelta::Kind::kReasoning) delta.reasoning += part.text;
    if (part.kind == ReplyDelta::Kind::kContent) delta.text += stops_.feed(part.text);
  }
  return delta;
}

std::vector<ReplyCall> ReplyText::tool_calls() const {
  return parser_ ? parser_->reply().calls : std::vector<ReplyCall>{};
}

}  // namespace sluice
