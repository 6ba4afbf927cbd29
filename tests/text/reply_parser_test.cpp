#include "text/reply_parser.h"

#include "text/fixture.h"

namespace sluice {
namespace {

// Ids of a reply written out with control spellings, which this test means as control tokens.
std::vector<TokenId> ids_of(std::string_view text) { return tiny_tokenizer().encode_special(text); }

Reply parsed(std::string_view text, bool thinking = true) {
  ReplyParser parser(tiny_tokenizer(), thinking);
  for (const TokenId id : ids_of(text)) parser.push(id);
  parser.finish();
  return parser.reply();
}

const std::string kThinkEnd = "<|close|>think<|sep|>";
const std::string kCallHead = "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>";

// The arguments of one call whose children are `children`.
std::string arguments_of(const std::string& children) {
  const Reply reply = parsed(kThinkEnd + kCallHead + children +
                             "<|close|>call<|sep|><|close|>tools<|sep|><|end_of_msg|>");
  EXPECT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.content, "");
  return reply.calls.empty() ? "" : reply.calls[0].arguments;
}

std::string argument_of(const std::string& type, const std::string& value) {
  return arguments_of("<|open|>argument key=\"k\" type=\"" + type + "\"<|sep|>" + value +
                      "<|close|>argument<|sep|>");
}

TEST(ReplyParser, ATypicalReplyIsTakenApart) {
  const Reply reply = parsed(
      "why\n<|close|>think<|sep|><|open|>response<|sep|>answer<|close|>response<|sep|>"
      "<|open|>tools<|sep|><|open|>call tool=\"get\" index=\"1\"<|sep|>"
      "<|open|>argument key=\"a\" type=\"string\"<|sep|>x<|close|>argument<|sep|>"
      "<|open|>argument key=\"b\" type=\"number\"<|sep|>2<|close|>argument<|sep|>"
      "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>ignored");
  EXPECT_EQ(reply.reasoning, "why\n");
  EXPECT_EQ(reply.content, "answer");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].id, "call_1");
  EXPECT_EQ(reply.calls[0].index, 1);
  EXPECT_EQ(reply.calls[0].name, "get");
  EXPECT_EQ(reply.calls[0].arguments, R"({"a": "x", "b": 2})");
}

TEST(ReplyParser, StoppedWhileThinkingThereIsOnlyReasoning) {
  const Reply reply = parsed("still thinking about");
  EXPECT_EQ(reply.reasoning, "still thinking about");
  EXPECT_EQ(reply.content, "");
  EXPECT_TRUE(reply.calls.empty());
}

TEST(ReplyParser, WithoutThinkingTheReplyBeginsInTheResponse) {
  const Reply reply = parsed("hello<|close|>response<|sep|>", /*thinking=*/false);
  EXPECT_EQ(reply.content, "hello");
  EXPECT_EQ(reply.reasoning, "");
}

TEST(ReplyParser, ArgumentsFollowTheirDeclaredType) {
  EXPECT_EQ(argument_of("string", " 1 "), R"({"k": " 1 "})");
  EXPECT_EQ(argument_of("string", "&quot;"), R"({"k": "&quot;"})");
  EXPECT_EQ(argument_of("null", "whatever"), R"({"k": null})");
  EXPECT_EQ(argument_of("boolean", "True"), R"({"k": true})");
  EXPECT_EQ(argument_of("boolean", " false "), R"({"k": false})");
  EXPECT_EQ(argument_of("boolean", "yes"), R"({"k": "yes"})");
  EXPECT_EQ(argument_of("number", "1.50"), R"({"k": 1.50})");
  EXPECT_EQ(argument_of("number", "12x"), R"({"k": "12x"})");
  EXPECT_EQ(argument_of("number", "123456789012345678901"), R"({"k": 123456789012345678901})");
  EXPECT_EQ(argument_of("object", "{\"a\": [1]}"), R"({"k": {"a": [1]}})");
  EXPECT_EQ(argument_of("object", "{\"a\": "), R"({"k": "{\"a\": "})");
  EXPECT_EQ(argument_of("array", "[1, 2]"), R"({"k": [1, 2]})");
  EXPECT_EQ(argument_of("integer", "7"), R"({"k": 7})");
  EXPECT_EQ(argument_of("date", "today"), R"({"k": "today"})");
}

TEST(ReplyParser, ACallWithoutArgumentsHasAnEmptyObject) { EXPECT_EQ(arguments_of(""), "{}"); }

TEST(ReplyParser, TheFirstChildDecidesTheFormOfACall) {
  const std::string argument =
      R"(<|open|>argument key="k" type="number"<|sep|>1<|close|>argument<|sep|>)";
  const std::string json = R"(<|open|>json type="object"<|sep|>{"raw<|close|>json<|sep|>)";
  EXPECT_EQ(arguments_of(json), "{\"raw");
  EXPECT_EQ(arguments_of(json + argument), "{\"raw");
  EXPECT_EQ(arguments_of(json + json), "{\"raw");
  EXPECT_EQ(arguments_of(argument + json), R"({"k": 1})");
  EXPECT_EQ(arguments_of(argument + argument), R"({"k": 1, "k": 1})");
}

TEST(ReplyParser, TextBetweenCallsAndArgumentsIsDropped) {
  const Reply reply =
      parsed(kThinkEnd +
             "<|open|>tools<|sep|> a <|open|>call tool=\"f\" index=\"1\"<|sep|> b "
             "<|open|>argument key=\"k\" type=\"string\"<|sep|>v<|close|>argument<|sep|> c "
             "<|close|>call<|sep|> d <|close|>tools<|sep|>");
  EXPECT_EQ(reply.content, "");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].arguments, R"({"k": "v"})");
}

TEST(ReplyParser, AnArgumentOutsideACallIsDropped) {
  const Reply reply = parsed(
      kThinkEnd + "<|open|>argument key=\"k\" type=\"string\"<|sep|>v<|close|>argument<|sep|>x");
  EXPECT_EQ(reply.content, "x");
  EXPECT_TRUE(reply.calls.empty());
}

TEST(ReplyParser, TextOutsideAllChannelsIsContent) {
  EXPECT_EQ(parsed("r" + kThinkEnd + "loose").content, "loose");
  EXPECT_EQ(parsed("r" + kThinkEnd + "<|close|>message<|sep|>after").content, "after");
}

TEST(ReplyParser, AnUnknownElementIsTransparent) {
  EXPECT_EQ(parsed("a<|open|>b<|sep|>c<|close|>b<|sep|>d").reasoning, "acd");
}

TEST(ReplyParser, ACloseOfAnOuterElementClosesTheInnerOnes) {
  const Reply reply =
      parsed(kThinkEnd + kCallHead +
             "<|open|>argument key=\"k\" type=\"string\"<|sep|>v<|close|>tools<|sep|>after");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].arguments, R"({"k": "v"})");
  EXPECT_EQ(reply.content, "after");
}

TEST(ReplyParser, ACloseOfWhatIsNotOpenIsIgnored) {
  EXPECT_EQ(parsed("a<|close|>response<|sep|>b<|close|><|sep|>c").reasoning, "abc");
}

TEST(ReplyParser, ASecondCallEndsTheFirst) {
  const Reply reply = parsed(kThinkEnd + kCallHead +
                             "<|open|>argument key=\"k\" type=\"number\"<|sep|>1"
                             "<|open|>argument key=\"l\" type=\"string\"<|sep|>m"
                             "<|open|>call tool=\"g\" index=\"2\"<|sep|>");
  ASSERT_EQ(reply.calls.size(), 2u);
  EXPECT_EQ(reply.calls[0].arguments, R"({"k": 1, "l": "m"})");
  EXPECT_EQ(reply.calls[1].arguments, "{}");
}

TEST(ReplyParser, IdsAreDistinctWhateverTheModelNumbers) {
  const auto call = [](const std::string& attributes) {
    return "<|open|>call tool=\"f\"" + attributes + "<|sep|><|close|>call<|sep|>";
  };
  const Reply reply = parsed(kThinkEnd + call(" index=\"2\"") + call(" index=\"2\"") + call("") +
                             call(" index=\"x\"") + call(" index=\"-1\"") + call(" index=\"1\""));
  std::vector<std::string> ids;
  for (const ReplyCall& c : reply.calls) ids.push_back(c.id);
  EXPECT_EQ(ids,
            (std::vector<std::string>{"call_2", "call_3", "call_4", "call_5", "call_6", "call_1"}));
}

TEST(ReplyParser, HeadersTolerateBlanks) {
  const Reply reply = parsed(
      "r<|close|> think <|sep|><|open|>\n response \n<|sep|>c<|close|> response<|sep|>"
      "<|open|> tools <|sep|><|open|> call  tool = \"a b\"  index=1 <|sep|>"
      "<|open|>argument  key=\"k\"\ttype=\"number\" <|sep|> 1 <|close|>argument <|sep|>");
  EXPECT_EQ(reply.reasoning, "r");
  EXPECT_EQ(reply.content, "c");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].name, "a b");
  EXPECT_EQ(reply.calls[0].id, "call_1");
  EXPECT_EQ(reply.calls[0].arguments, R"({"k": 1})");
}

TEST(ReplyParser, AttributesAreUnescapedOnce) {
  const Reply reply =
      parsed(kThinkEnd + "<|open|>call tool=\"&quot;a&quot; &amp;quot; &lt;\" index=\"1\"<|sep|>");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].name, "\"a\" &quot; &lt;");
}

TEST(ReplyParser, BlankContentBesideCallsIsDroppedAndKeptWithout) {
  const std::string blank = kThinkEnd + "<|open|>response<|sep|>\n \n<|close|>response<|sep|>";
  EXPECT_EQ(parsed(blank).content, "\n \n");
  EXPECT_EQ(parsed(blank + kCallHead).content, "");
  EXPECT_EQ(parsed(kThinkEnd + "<|open|>response<|sep|>\n x \n<|close|>response<|sep|>" + kCallHead)
                .content,
            "\n x \n");
}

TEST(ReplyParser, AnUnterminatedHeaderBecomesText) {
  EXPECT_EQ(parsed("a<|close|>thi").reasoning, "athi");
  EXPECT_EQ(parsed(kThinkEnd + "<|open|>response<|sep|>x<|open|>tools").content, "xtools");
  EXPECT_EQ(parsed("a<|open|>b<|close|>think<|sep|>c").reasoning, "ab");
  EXPECT_EQ(parsed("a<|sep|>b").reasoning, "ab");
}

// Wherever generation stops, what came before stays and call arguments are whole JSON.
TEST(ReplyParser, EveryPrefixOfAReplyEndsWell) {
  const std::vector<TokenId> ids = ids_of(
      "r\u00e9<|close|>think<|sep|><|open|>response<|sep|>\U0001F642<|close|>response<|sep|>" +
      kCallHead +
      "<|open|>argument key=\"s\" type=\"string\"<|sep|>\"\U0001F642\\<|close|>argument<|sep|>"
      "<|open|>argument key=\"o\" type=\"object\"<|sep|>{\"a\": 1}<|close|>argument<|sep|>"
      "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>");
  size_t with_calls = 0;
  for (size_t cut = 0; cut <= ids.size(); ++cut) {
    ReplyParser parser(tiny_tokenizer(), /*thinking=*/true);
    for (size_t i = 0; i < cut; ++i) parser.push(ids[i]);
    EXPECT_EQ(parser.ended(), cut == ids.size());
    parser.finish();
    EXPECT_TRUE(parser.ended());
    for (const ReplyCall& call : parser.reply().calls) {
      EXPECT_TRUE(parse_json(call.arguments, "test").ok()) << call.arguments;
      ++with_calls;
    }
  }
  EXPECT_GT(with_calls, 20u);
}

TEST(ReplyParser, DeltasStreamStringArgumentsAsTheyCome) {
  ReplyParser parser(tiny_tokenizer(), /*thinking=*/true);
  for (const TokenId id : ids_of(kThinkEnd + kCallHead)) parser.push(id);
  std::vector<ReplyDelta> deltas = parser.take_deltas();
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].kind, ReplyDelta::Kind::kCallBegin);
  EXPECT_EQ(parser.reply().calls[deltas[0].call].name, "f");
  for (const TokenId id : ids_of("<|open|>argument key=\"k\" type=\"string\"<|sep|>one")) {
    parser.push(id);
  }
  deltas = parser.take_deltas();
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].kind, ReplyDelta::Kind::kArguments);
  EXPECT_EQ(deltas[0].text, "{\"k\": \"one");
  EXPECT_TRUE(parser.take_deltas().empty());
}

TEST(ReplyParser, AGoldenReplyIsTakenApart) {
  int seen = 0;
  for (const Json& golden : tiny_goldens()["prompts"]) {
    if (golden["kind"] != "chat") continue;
    const bool thinking = golden["options"].value("thinking", true);
    ReplyParser parser(tiny_tokenizer(), thinking);
    for (const Json& id : golden["bf16"]["greedy"]) parser.push(id.get<TokenId>());
    parser.finish();
    const Reply& reply = parser.reply();
    const auto text = golden["bf16"]["text"].get<std::string>();
    EXPECT_EQ(reply.reasoning, thinking ? text.substr(0, text.find("<|close|>")) : "");
    EXPECT_EQ(reply.content.find("<|"), std::string::npos) << reply.content;
    if (golden["name"] == "chat_weather_call") {
      ASSERT_EQ(reply.calls.size(), 1u);
      EXPECT_EQ(reply.calls[0].name, "get_weather");
      EXPECT_EQ(reply.calls[0].arguments, R"({"city": "Paris"})");
      EXPECT_EQ(reply.content, "");
    } else {
      EXPECT_FALSE(reply.content.empty()) << golden["name"];
    }
    ++seen;
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace sluice
