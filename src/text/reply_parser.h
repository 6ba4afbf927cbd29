// Takes a reply apart by token ids (spec 7.8): reasoning, content and tool calls, as a stream of
// deltas and as a whole. A control spelling inside a text is text, since only ids count.
// One owner.
//
// Decisions where spec 7.8 is silent:
// - A header cut off by another control token or by the end becomes text of the channel around it,
//   without the control token's spelling. A separator outside a header is dropped.
// - Special tokens other than the four of the chat format are text: their spelling.
// - An element with an unknown tag is transparent: its text belongs to the channel around it.
// - A new call ends an open one; a new argument ends an open one.
// - The first child of a call decides its form, since it may already be streamed: after an argument
//   a json child is dropped, and the other way round.
// - Numbers, objects and arrays enter the arguments as the model wrote them, if they are valid
// JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace sluice {

struct ReplyCall {
  std::string id;  // call_{index}, distinct within the reply
  std::string name;
  int64_t index;          // as the model numbered it, from 1; made distinct
  std::string arguments;  // JSON text of an object, or whatever a json child held
};

struct Reply {
  std::string reasoning;
  std::string content;  // empty if it would be blank beside tool calls
  std::vector<ReplyCall> calls;
};

struct ReplyDelta {
  enum class Kind { kReasoning, kContent, kCallBegin, kArguments };
  Kind kind;
  size_t call;       // position in Reply::calls, of the last two kinds
  std::string text;  // complete UTF-8; empty for kCallBegin: id and name are in reply().calls[call]
};

class ReplyParser {
 public:
  // `thinking` as in the ChatRequest: the prompt ends inside the think or the response channel.
  // `tokenizer` outlives this object.
  ReplyParser(const Tokenizer& tokenizer, bool thinking);

  // 0 <= id < vocab_size. Ids after the end of the message are ignored.
  void push(TokenId id);

  // Ends the reply where it stands: what is open is closed, what is held is given out.
  void finish();

  // True after the model's end of message or finish().
  bool ended() const { return ended_; }

  // The deltas since the last call; their texts joined are the fields of reply().
  std::vector<ReplyDelta> take_deltas();

  // All so far; final once ended().
  const Reply& reply() const { return reply_; }

 private:
  enum class Channel { kThink, kResponse, kArgument, kJson, kCall, kDropped, kTransparent };
  enum class Header { kNone, kOpen, kClose };
  enum class Form { kEmpty, kArguments, kJson };
  struct Frame {
    std::string tag;
    Channel channel;
  };

  void begin_header(Header kind);
  void end_header();
  void abandon_header();
  void flush_decoder();

  void open_element(std::string_view header);
  void close_element(std::string_view tag);
  void close_if_open(Channel channel);
  void pop_to(size_t depth);
  bool is_open(Channel channel) const;

  void begin_call(std::string name, std::string_view index);
  void begin_argument(std::string_view key, std::string type);
  void end_argument();
  void end_call();

  void text(std::string_view text);
  void content(std::string_view text);
  void emit(ReplyDelta::Kind kind, std::string_view text);

  const Tokenizer& tokenizer_;
  StreamDecoder decoder_;
  Reply reply_;
  std::vector<ReplyDelta> deltas_;
  std::vector<Frame> frames_;  // open elements, outermost first
  Header header_kind_ = Header::kNone;
  std::string header_;
  std::string held_blank_;  // content that is blank so far
  bool content_begun_ = false;
  Form form_ = Form::kEmpty;  // of the last call
  std::string argument_type_;
  std::string argument_value_;  // of an argument that is no string, until it closes
  bool ended_ = false;
};

}  // namespace sluice
