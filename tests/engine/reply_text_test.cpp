// The text of a reply by its ids: raw, in the channels of a chat, and cut by stop strings.
#include "engine/reply_text.h"

#include <gtest/gtest.h>

#include "engine/tiny_engine.h"

namespace sluice {
namespace {

Tokenizer tiny_tokenizer() {
  const std::string ranks = read_text_file(tiny_path() / "tiktoken.model", 1 << 20).value();
  const std::string config = read_text_file(tiny_path() / "tokenizer_config.json", 1 << 20).value();
  return Tokenizer::parse(ranks, config).value();
}

// All ids pushed until a stop string ends the text.
TextDelta whole(ReplyText& reply, const std::vector<TokenId>& ids) {
  TextDelta all;
  const auto add = [&all](const TextDelta& delta) {
    all.reasoning += delta.reasoning;
    all.text += delta.text;
  };
  for (const TokenId id : ids) {
    if (!reply.stopped()) add(reply.push(id));
  }
  add(reply.finish());
  return all;
}

TEST(ReplyText, RawTextSpellsSpecialTokens) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Golden want = golden("chat_italy");
  ReplyText reply(tokenizer, ReplyForm::kRaw, {});
  const TextDelta all = whole(reply, want.greedy);
  EXPECT_EQ(all.text, want.text);
  EXPECT_EQ(all.reasoning, "");
  EXPECT_TRUE(all.text.ends_with("<|end_of_msg|>"));
}

TEST(ReplyText, AChatIsThinkingContentAndToolCalls) {
  const Tokenizer tokenizer = tiny_tokenizer();
  ReplyText italy(tokenizer, ReplyForm::kThinking, {});
  const TextDelta all = whole(italy, golden("chat_italy").greedy);
  EXPECT_NE(all.reasoning, "");
  EXPECT_NE(all.text.find("Rome"), std::string::npos) << all.text;
  EXPECT_EQ((all.text + all.reasoning).find("<|"), std::string::npos);

  ReplyText weather(tokenizer, ReplyForm::kThinking, {});
  whole(weather, golden("chat_weather_call").greedy);
  ASSERT_EQ(weather.tool_calls().size(), 1u);
  EXPECT_EQ(weather.tool_calls()[0].name, "get_weather");

  ReplyText answer(tokenizer, ReplyForm::kAnswer, {});
  const TextDelta direct = whole(answer, golden("chat_italy_nothink").greedy);
  EXPECT_EQ(direct.reasoning, "");
  EXPECT_NE(direct.text.find("Rome"), std::string::npos);
}

TEST(ReplyText, StopStringsCutTheContentAndNotTheThinking) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Golden want = golden("chat_italy");
  ReplyText uncut(tokenizer, ReplyForm::kThinking, {});
  const TextDelta all = whole(uncut, want.greedy);
  ASSERT_NE(all.reasoning.find("Italy"), std::string::npos) << all.reasoning;
  ReplyText cut(tokenizer, ReplyForm::kThinking, {"Italy"});
  const TextDelta short_one = whole(cut, want.greedy);
  EXPECT_EQ(short_one.reasoning, all.reasoning);
  EXPECT_EQ(short_one.text, all.text.substr(0, all.text.find("Italy")));
  EXPECT_TRUE(cut.stopped());
}

TEST(ReplyText, AnUnfinishedCharacterIsHeldAndReplacedAtTheEnd) {
  const Tokenizer tokenizer = tiny_tokenizer();
  std::vector<TokenId> ids = tokenizer.encode("\xF0\x9F\x99");  // three bytes of four
  ReplyText reply(tokenizer, ReplyForm::kRaw, {});
  for (const TokenId id : ids) EXPECT_EQ(reply.push(id).text, "");
  EXPECT_EQ(reply.finish().text, "\uFFFD");
}

}  // namespace
}  // namespace sluice
