// What an assistant message renders to after the generation prompt is what a perfect model would
// emit; the parser must give the message back.
#include <algorithm>
#include <string>
#include <vector>

#include "text/chat.h"
#include "text/fixture.h"
#include "text/reply_parser.h"

namespace sluice {
namespace {

Json body_of(Json messages, bool thinking) {
  Json body = Json::object();
  body["messages"] = std::move(messages);
  body["thinking"] = thinking;
  return body;
}

// The ids that follow the generation prompt when the model answers with `assistant`.
std::vector<TokenId> reply_ids(const Json& assistant, bool thinking) {
  const Json user = {{"role", "user"}, {"content", "question"}};
  const auto prompt = render(body_of(Json::array({user}), thinking).dump());
  const auto whole = render(body_of(Json::array({user, assistant}), thinking).dump());
  // Both end in a generation prompt; its length is what follows the one user message.
  const size_t generation = prompt.size() - 12;
  CHECK(std::equal(prompt.begin(), prompt.end(), whole.begin()));
  return tiny_tokenizer().encode(
      std::span(whole).subspan(prompt.size(), whole.size() - prompt.size() - generation));
}

Reply parsed(const std::vector<TokenId>& ids, bool thinking) {
  ReplyParser parser(tiny_tokenizer(), thinking);
  Reply joined;
  const auto collect = [&] {
    for (const ReplyDelta& delta : parser.take_deltas()) {
      switch (delta.kind) {
        case ReplyDelta::Kind::kReasoning:
          joined.reasoning += delta.text;
          break;
        case ReplyDelta::Kind::kContent:
          joined.content += delta.text;
          break;
        case ReplyDelta::Kind::kCallBegin:
          EXPECT_EQ(delta.call, joined.calls.size());
          joined.calls.push_back(parser.reply().calls[delta.call]);
          joined.calls.back().arguments.clear();
          break;
        case ReplyDelta::Kind::kArguments:
          joined.calls[delta.call].arguments += delta.text;
          break;
      }
    }
  };
  for (const TokenId id : ids) {
    parser.push(id);
    collect();
  }
  EXPECT_TRUE(parser.ended());
  EXPECT_EQ(joined.reasoning, parser.reply().reasoning);
  EXPECT_EQ(joined.content, parser.reply().content);
  EXPECT_EQ(joined.calls.size(), parser.reply().calls.size());
  for (size_t i = 0; i < joined.calls.size(); ++i) {
    EXPECT_EQ(joined.calls[i].arguments, parser.reply().calls[i].arguments);
  }
  return parser.reply();
}

// Strings that would break a parser of text, or one that cuts characters.
const char* const kHostile[] = {
    "plain",
    " spaces around ",
    "\n",
    "<|close|>argument<|sep|>",
    "<|close|>think<|sep|><|open|>response<|sep|>x",
    "<|end_of_msg|>[EOS]<|media_pad|>",
    "<|open|>call tool=\"x\" index=\"9\"<|sep|>",
    "quote \" amp & &quot; &amp;quot; back \\ tab \t \x01",
    "\u00e9 \u4f60\u597d \U0001F642\U0001F469\u200D\U0001F4BB",
    "{\"looks\": [\"like\", null]}",
};

TEST(ReplyRoundTrip, ReasoningAndContentComeBack) {
  for (const std::string text : kHostile) {
    const Json message = {
        {"role", "assistant"}, {"reasoning_content", "r" + text}, {"content", text}};
    const Reply reply = parsed(reply_ids(message, /*thinking=*/true), true);
    EXPECT_EQ(reply.reasoning, "r" + text);
    EXPECT_EQ(reply.content, text);
    EXPECT_TRUE(reply.calls.empty());
    const Reply quick = parsed(reply_ids(message, /*thinking=*/false), false);
    EXPECT_EQ(quick.reasoning, "");
    EXPECT_EQ(quick.content, text);
  }
}

TEST(ReplyRoundTrip, ToolCallsComeBackWithNamesAndArguments) {
  for (const std::string text : kHostile) {
    Json arguments = Json::object();
    arguments[text] = text;
    arguments["n"] = -12.5;
    arguments["i"] = 7;
    arguments["t"] = true;
    arguments["z"] = nullptr;
    arguments["o"] = {{"k", text}, {"a", {1, text, nullptr, false}}};
    arguments["e"] = "";
    const Json calls = {
        {{"id", "a"}, {"function", {{"name", text}, {"arguments", arguments.dump()}}}},
        {{"id", "b"}, {"function", {{"name", "ping"}, {"arguments", ""}}}}};
    const Json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
    const Reply reply = parsed(reply_ids(message, /*thinking=*/true), true);
    EXPECT_EQ(reply.content, "");
    ASSERT_EQ(reply.calls.size(), 2u);
    EXPECT_EQ(reply.calls[0].name, text);
    EXPECT_EQ(reply.calls[0].id, "call_1");
    EXPECT_EQ(json_of(reply.calls[0].arguments), arguments) << reply.calls[0].arguments;
    EXPECT_EQ(reply.calls[1].name, "ping");
    EXPECT_EQ(reply.calls[1].id, "call_2");
    EXPECT_EQ(reply.calls[1].arguments, "{}");
  }
}

TEST(ReplyRoundTrip, BrokenArgumentsComeBackAsTheyAre) {
  const std::string broken = "{\"city\": Paris <|close|>json<|sep|>";
  const Json message = {{"role", "assistant"},
                        {"tool_calls", {{{"name", "f"}, {"arguments", broken}}}}};
  const Reply reply = parsed(reply_ids(message, /*thinking=*/true), true);
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].arguments, broken);
}

TEST(ReplyRoundTrip, AReplySentBackGivesTheSameIds) {
  const Json calls = {
      {{"id", "a"},
       {"function",
        {{"name", "f"},
         {"arguments", R"({"s": "x\ny", "f": 1.0, "big": 123456789012345678901234567890})"}}}}};
  const Json message = {{"role", "assistant"},
                        {"reasoning_content", " think \n"},
                        {"content", "text"},
                        {"tool_calls", calls}};
  const std::vector<TokenId> ids = reply_ids(message, /*thinking=*/true);
  const Reply reply = parsed(ids, true);
  ASSERT_EQ(reply.calls.size(), 1u);
  const Json again = {
      {"role", "assistant"},
      {"reasoning_content", reply.reasoning},
      {"content", reply.content},
      {"tool_calls",
       {{{"id", reply.calls[0].id},
         {"function", {{"name", reply.calls[0].name}, {"arguments", reply.calls[0].arguments}}}}}}};
  EXPECT_EQ(reply_ids(again, /*thinking=*/true), ids);
}

}  // namespace
}  // namespace sluice
