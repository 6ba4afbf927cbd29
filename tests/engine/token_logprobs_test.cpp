// Log probabilities of a row, and which tokens' are shown and when.
#include "engine/token_logprobs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/sampler.h"

namespace sluice {
namespace {

std::vector<TokenId> ids_of(const std::vector<TokenLogprobs>& entries) {
  std::vector<TokenId> ids;
  for (const TokenLogprobs& entry : entries) ids.push_back(entry.token.id);
  return ids;
}

TokenLogprobs entry(TokenId id) { return {.token = {id, 0.0}, .top = {}}; }

TextDelta content(const std::string& shown, size_t grown) {
  return {.reasoning = {}, .text = shown, .calls = {}, .text_bytes = grown};
}
const TextDelta kNothing;
const TextDelta kThought{.reasoning = "hm", .text = {}};

TEST(TokenLogprobs, AreTheLogSoftmaxAndFallWithTiesByRisingId) {
  const std::vector<float> logits = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};
  const TokenLogprobs got = token_logprobs(logits, 2, 3);
  EXPECT_EQ(got.token.id, 2);
  EXPECT_EQ(got.token.logprob, raw_logprob(logits, 2));
  ASSERT_EQ(got.top.size(), 3u);
  EXPECT_EQ(got.top[0].id, 1);
  EXPECT_EQ(got.top[1].id, 3);
  EXPECT_EQ(got.top[2].id, 2);
  EXPECT_NEAR(got.top[0].logprob, raw_logprob(logits, 1), 1e-12);
  double total = 0.0;
  for (TokenId id = 0; id < 5; ++id) total += std::exp(token_logprobs(logits, id, 0).token.logprob);
  EXPECT_NEAR(total, 1.0, 1e-12);
  EXPECT_TRUE(token_logprobs(logits, 0, 0).top.empty());
  EXPECT_EQ(token_logprobs(logits, 0, 99).top.size(), 5u);
}

TEST(LogprobGate, ShowsTheTokensOfTheContentAndNoOthers) {
  LogprobGate gate(ReplyForm::kThinking);
  EXPECT_TRUE(gate.push(entry(1), false, kThought).empty());
  EXPECT_TRUE(gate.push(entry(100), true, kNothing).empty());  // <|close|>
  EXPECT_TRUE(gate.push(entry(2), false, kNothing).empty());   // think
  EXPECT_TRUE(gate.push(entry(101), true, kNothing).empty());  // <|sep|>
  EXPECT_TRUE(gate.push(entry(3), false, kNothing).empty());   // half a character, or a blank
  EXPECT_EQ(ids_of(gate.push(entry(4), false, content("é", 2))), (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(ids_of(gate.push(entry(5), false, content("x", 1))), std::vector<TokenId>{5});
  EXPECT_TRUE(gate.push(entry(102), true, kNothing).empty());
  EXPECT_TRUE(gate.finish(kNothing, false).empty());
}

TEST(LogprobGate, HoldsTokensBackWhoseTextMayBeCut) {
  LogprobGate gate(ReplyForm::kAnswer);
  EXPECT_EQ(ids_of(gate.push(entry(1), false, content("ab", 3))), std::vector<TokenId>{1});
  EXPECT_TRUE(gate.push(entry(2), false, content("c", 2)).size() == 0u);
  EXPECT_EQ(ids_of(gate.push(entry(3), false, content("dex", 2))), (std::vector<TokenId>{2, 3}));
}

TEST(LogprobGate, DropsWhatAStopStringCutOff) {
  LogprobGate gate(ReplyForm::kRaw);
  EXPECT_EQ(ids_of(gate.push(entry(1), false, content("ab", 2))), std::vector<TokenId>{1});
  EXPECT_TRUE(gate.push(entry(2), false, content("", 2)).empty());
  EXPECT_TRUE(gate.push(entry(3), false, content("", 2)).empty());  // the stop string is whole
  EXPECT_TRUE(gate.finish(kNothing, true).empty());

  LogprobGate open(ReplyForm::kRaw);
  open.push(entry(1), false, content("ab", 2));
  open.push(entry(2), false, content("", 2));
  EXPECT_EQ(ids_of(open.finish(content("cd", 0), false)), std::vector<TokenId>{2});
}

TEST(LogprobGate, RawTextCountsSpecialTokens) {
  LogprobGate gate(ReplyForm::kRaw);
  EXPECT_EQ(ids_of(gate.push(entry(100), true, content("[EOS]", 5))), std::vector<TokenId>{100});
}

}  // namespace
}  // namespace sluice
