#include "text/reply_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/python_json.h"
#include "text/unicode.h"

namespace sluice {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr int64_t kCallIndexMax = 1'000'000;  // larger ones are renumbered: no sum overflows

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Cuts the leading characters of `text` up to the first of `stops` off and returns them.
std::string_view take_until(std::string_view& text, std::string_view stops) {
  const std::string_view taken = text.substr(0, text.find_first_of(stops));
  text.remove_prefix(taken.size());
  return taken;
}

void skip_blanks(std::string_view& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string unescaped(std::string_view value) {
  std::string text(value);
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  return text;
}

std::string_view first_word(std::string_view& header) {
  skip_blanks(header);
  return take_until(header, kBlanks);
}

// The value of attribute `key` in what follows a header's tag, or nothing. Blanks around `=` and
// missing quotes are tolerated.
std::string attribute(std::string_view rest, std::string_view key) {
  constexpr std::string_view kKeyEnds = " \t\n\v\f\r=";
  while (true) {
    skip_blanks(rest);
    if (rest.empty()) return {};
    const std::string_view found = take_until(rest, kKeyEnds);
    skip_blanks(rest);
    if (!rest.starts_with('=')) continue;  // a bare word
    rest.remove_prefix(1);
    skip_blanks(rest);
    std::string_view value;
    if (rest.starts_with('"')) {
      rest.remove_prefix(1);
      value = take_until(rest, "\"");
      if (!rest.empty()) rest.remove_prefix(1);
    } else {
      value = take_until(rest, kBlanks);
    }
    if (found == key) return unescaped(value);
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(text, out);
  return out + "\"";
}

// JSON text of an argument that was not declared a string.
std::string json_value(const std::string& type, const std::string& raw) {
  const std::string_view text = trimmed(raw);
  if (type == "null") return "null";
  if (type == "boolean") {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return lower == "true" || lower == "false" ? lower : json_string(raw);
  }
  // Parsed inside an array because it will stand inside an object: depth is bounded.
  const Result<Json> parsed = parse_python_json("[" + std::string(text) + "]");
  return parsed.ok() && parsed.value().size() == 1 ? std::string(text) : json_string(raw);
}

}  // namespace

ReplyParser::ReplyParser(const Tokenizer& tokenizer, bool thinking)
    : tokenizer_(tokenizer), decoder_(tokenizer) {
  frames_.push_back({"message", Channel::kTransparent});
  frames_.push_back(thinking ? Frame{"think", Channel::kThink}
                             : Frame{"response", Channel::kResponse});
}

void ReplyParser::push(TokenId id) {
  if (ended_) return;
  const ControlTokens& control = tokenizer_.control();
  if (id == control.open) {
    begin_header(Header::kOpen);
  } else if (id == control.close) {
    begin_header(Header::kClose);
  } else if (id == control.sep) {
    end_header();
  } else if (id == control.end_of_msg) {
    finish();
  } else if (header_kind_ == Header::kNone) {
    text(decoder_.push(id));
  } else {
    header_ += decoder_.push(id);
  }
}

void ReplyParser::finish() {
  if (ended_) return;
  flush_decoder();
  abandon_header();
  pop_to(0);
  if (reply_.calls.empty()) emit(ReplyDelta::Kind::kContent, held_blank_);
  ended_ = true;
}

std::vector<ReplyDelta> ReplyParser::take_deltas() { return std::exchange(deltas_, {}); }

void ReplyParser::begin_header(Header kind) {
  flush_decoder();
  abandon_header();
  header_kind_ = kind;
}

void ReplyParser::end_header() {
  flush_decoder();
  const std::string header = std::exchange(header_, {});
  const Header kind = std::exchange(header_kind_, Header::kNone);
  if (kind == Header::kOpen) open_element(header);
  if (kind == Header::kClose) {
    std::string_view rest = header;
    close_element(first_word(rest));
  }
}

void ReplyParser::abandon_header() {
  header_kind_ = Header::kNone;
  text(std::exchange(header_, {}));
}

void ReplyParser::flush_decoder() {
  const std::string rest = decoder_.flush();
  header_kind_ == Header::kNone ? text(rest) : static_cast<void>(header_ += rest);
}

void ReplyParser::open_element(std::string_view header) {
  std::string_view rest = header;
  const std::string tag(first_word(rest));
  Channel channel = Channel::kTransparent;
  if (tag == "think") {
    channel = Channel::kThink;
  } else if (tag == "response") {
    channel = Channel::kResponse;
  } else if (tag == "tools") {
    channel = Channel::kDropped;
  } else if (tag == "call") {
    close_if_open(Channel::kCall);
    channel = Channel::kCall;
    begin_call(attribute(rest, "tool"), attribute(rest, "index"));
  } else if (tag == "argument" || tag == "json") {
    const bool is_json = tag == "json";
    const Form form = is_json ? Form::kJson : Form::kArguments;
    close_if_open(Channel::kArgument);
    close_if_open(Channel::kJson);
    channel = Channel::kDropped;
    if (is_open(Channel::kCall) && (form_ == Form::kEmpty || (form_ == form && !is_json))) {
      channel = is_json ? Channel::kJson : Channel::kArgument;
      if (!is_json) begin_argument(attribute(rest, "key"), attribute(rest, "type"));
      form_ = form;
    }
  }
  frames_.push_back({tag, channel});
}

void ReplyParser::close_element(std::string_view tag) {
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].tag == tag) return pop_to(i);
  }
}

void ReplyParser::close_if_open(Channel channel) {
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].channel == channel) return pop_to(i);
  }
}

void ReplyParser::pop_to(size_t depth) {
  while (frames_.size() > depth) {
    const Channel channel = frames_.back().channel;
    frames_.pop_back();
    if (channel == Channel::kArgument) end_argument();
    if (channel == Channel::kCall) end_call();
  }
}

bool ReplyParser::is_open(Channel channel) const {
  return std::any_of(frames_.begin(), frames_.end(),
                     [&](const Frame& frame) { return frame.channel == channel; });
}

void ReplyParser::begin_call(std::string name, std::string_view index) {
  int64_t number = 0, highest = 0;
  const auto [end, problem] = std::from_chars(index.data(), index.data() + index.size(), number);
  bool usable = problem == std::errc() && end == index.data() + index.size() && number > 0 &&
                number <= kCallIndexMax;
  for (const ReplyCall& call : reply_.calls) {
    highest = std::max(highest, call.index);
    usable = usable && call.index != number;
  }
  if (!usable) number = highest + 1;
  reply_.calls.push_back({"call_" + std::to_string(number), std::move(name), number, ""});
  form_ = Form::kEmpty;
  deltas_.push_back({ReplyDelta::Kind::kCallBegin, reply_.calls.size() - 1, ""});
}

void ReplyParser::begin_argument(std::string_view key, std::string type) {
  argument_type_ = std::move(type);
  argument_value_.clear();
  emit(ReplyDelta::Kind::kArguments, (form_ == Form::kEmpty ? "{" : ", ") + json_string(key) +
                                         ": " + (argument_type_ == "string" ? "\"" : ""));
}

void ReplyParser::end_argument() {
  emit(ReplyDelta::Kind::kArguments,
       argument_type_ == "string" ? "\"" : json_value(argument_type_, argument_value_));
}

void ReplyParser::end_call() {
  if (form_ == Form::kEmpty) emit(ReplyDelta::Kind::kArguments, "{}");
  if (form_ == Form::kArguments) emit(ReplyDelta::Kind::kArguments, "}");
}

// Gives `text` to the innermost element that is a channel; outside all channels it is content.
void ReplyParser::text(std::string_view text) {
  if (text.empty()) return;
  const auto frame = std::find_if(frames_.rbegin(), frames_.rend(), [](const Frame& f) {
    return f.channel != Channel::kTransparent;
  });
  switch (frame == frames_.rend() ? Channel::kResponse : frame->channel) {
    case Channel::kThink:
      return emit(ReplyDelta::Kind::kReasoning, text);
    case Channel::kTransparent:
    case Channel::kResponse:
      return content(text);
    case Channel::kJson:
      return emit(ReplyDelta::Kind::kArguments, text);
    case Channel::kArgument:
      if (argument_type_ == "string") {
        std::string literal;
        append_json_escaped(text, literal);
        emit(ReplyDelta::Kind::kArguments, literal);
      } else {
        argument_value_ += text;
      }
      return;
    case Channel::kCall:
    case Channel::kDropped:
      return;
  }
}

// Blank content is held until more follows, because beside tool calls it must not appear.
void ReplyParser::content(std::string_view text) {
  if (!content_begun_) {
    held_blank_ += text;
    if (is_blank(text)) return;
    content_begun_ = true;
    text = held_blank_;
  }
  emit(ReplyDelta::Kind::kContent, text);
  held_blank_.clear();
}

void ReplyParser::emit(ReplyDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool of_call = kind == ReplyDelta::Kind::kArguments;
  const size_t call = of_call ? reply_.calls.size() - 1 : 0;
  std::string& field = kind == ReplyDelta::Kind::kReasoning ? reply_.reasoning
                       : of_call                            ? reply_.calls[call].arguments
                                                            : reply_.content;
  field += text;
  if (!deltas_.empty() && deltas_.back().kind == kind && deltas_.back().call == call) {
    deltas_.back().text += text;
  } else {
    deltas_.push_back({kind, call, std::string(text)});
  }
}

}  // namespace sluice
