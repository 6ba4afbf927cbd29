// A model's reply. First byte: bit 0 thinking, bit 1 whether the rest is text with control
// spellings or token ids of two bytes each, the other bits how often deltas are taken.
#include <set>
#include <string>

#include "fuzz/bundled_tokenizer.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/text_checks.h"
#include "text/python_json.h"
#include "text/reply_parser.h"

namespace sluice {
namespace {

std::vector<TokenId> ids_of(std::string_view bytes) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto high = static_cast<uint8_t>(bytes[i]), low = static_cast<uint8_t>(bytes[i + 1]);
    ids.push_back(static_cast<TokenId>((high << 8 | low) % bundled_tokenizer().vocab_size()));
  }
  return ids;
}

// What the deltas say, joined.
class Joined {
 public:
  void add(const ReplyDelta& delta, const Reply& reply) {
    std::string valid;
    append_utf8_lossy(delta.text, valid);
    CHECK(valid == delta.text);
    switch (delta.kind) {
      case ReplyDelta::Kind::kReasoning:
        reasoning_ += delta.text;
        return;
      case ReplyDelta::Kind::kContent:
        content_ += delta.text;
        return;
      case ReplyDelta::Kind::kCallBegin:
        CHECK(delta.call == arguments_.size() && delta.call < reply.calls.size());
        arguments_.emplace_back();
        return;
      case ReplyDelta::Kind::kArguments:
        CHECK(delta.call + 1 == arguments_.size());
        arguments_.back() += delta.text;
        return;
    }
  }
  void check(const Reply& reply) const {
    CHECK(reply.reasoning == reasoning_ && reply.content == content_);
    CHECK(reply.calls.size() == arguments_.size());
    std::set<std::string> call_ids;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      CHECK(reply.calls[i].arguments == arguments_[i]);
      CHECK(call_ids.insert(reply.calls[i].id).second);
      CHECK(reply.calls[i].index > 0);
    }
  }

 private:
  std::string reasoning_, content_;
  std::vector<std::string> arguments_;
};

}  // namespace

void fuzz_reply(std::string_view input) {
  if (input.empty()) return;
  const auto mode = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  const Tokenizer& tokenizer = bundled_tokenizer();
  const bool is_text = (mode & 2) != 0;
  const std::vector<TokenId> ids = is_text ? tokenizer.encode_special(input) : ids_of(input);
  ReplyParser parser(tokenizer, (mode & 1) != 0);
  Joined joined;
  const auto take = [&] {
    for (const ReplyDelta& delta : parser.take_deltas()) joined.add(delta, parser.reply());
  };
  size_t n_pushed = 0;
  for (const TokenId id : ids) {
    parser.push(id);
    if (++n_pushed % ((mode >> 2) + 1u) == 0) take();
  }
  parser.finish();
  take();
  CHECK(parser.ended());
  joined.check(parser.reply());
  // Only a json child may make arguments other than an object.
  if (!is_text || input.find("json") != std::string_view::npos) return;
  for (const ReplyCall& call : parser.reply().calls) {
    const Result<Json> arguments = parse_python_json(call.arguments);
    CHECK(arguments.ok() && arguments.value().is_object());
  }
}

}  // namespace sluice
