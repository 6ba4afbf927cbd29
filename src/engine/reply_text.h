// The text of a reply, piece by piece as its ids come: raw decoding or the channels of a chat, cut
// before the first stop string. One owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/stop_strings.h"
#include "text/reply_parser.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace sluice {

// kRaw: a continuation, special tokens as spelled. The others: a chat's reply, whose prompt ends
// inside the thinking or inside the answer.
enum class ReplyForm { kRaw, kThinking, kAnswer };

// A piece of a tool call.
struct CallDelta {
  size_t call = 0;      // position among the reply's calls
  bool begins = false;  // the first piece of a call, which has its id and name
  std::string id = {};
  std::string name = {};
  std::string arguments = {};  // JSON text that became certain
};

// What became certain. Complete UTF-8.
struct TextDelta {
  std::string reasoning;
  std::string text;
  std::vector<CallDelta> calls = {};  // chat only
  // Bytes by which the text grew before the search for stop strings held some of it back.
  size_t text_bytes = 0;
  bool empty() const { return reasoning.empty() && text.empty() && calls.empty(); }
};

class ReplyText {
 public:
  // `tokenizer` outlives this object. Stop strings are not empty; in a chat they are looked for in
  // the content only.
  ReplyText(const Tokenizer& tokenizer, ReplyForm form, std::vector<std::string> stop_strings);

  TextDelta push(TokenId id);
  // What is still held; call once, after the last id.
  TextDelta finish();
  // Whether a stop string ended the text: nothing more will come.
  bool stopped() const { return stops_.stopped(); }
  // Tool calls so far; complete after finish().
  std::vector<ReplyCall> tool_calls() const;

 private:
  TextDelta take_chat_deltas();
  void feed_text(std::string_view text, TextDelta& delta);

  std::optional<ReplyParser> parser_;  // of a chat
  StreamDecoder decoder_;              // of raw text
  StopMatcher stops_;
};

}  // namespace sluice
