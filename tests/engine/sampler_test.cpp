// The sampler against expectations written down independently of it: published vectors for the
// generator, libm for exp and log, hand-made distributions for each stage and for their order.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "engine/philox.h"
#include "engine/real64.h"

namespace sluice {
namespace {

// Logits whose softmax is `p`.
std::vector<float> logits_of(const std::vector<double>& p) {
  std::vector<float> logits;
  for (const double value : p) logits.push_back(static_cast<float>(std::log(value)));
  return logits;
}

// How often each token is drawn at the positions 0 .. n - 1, as a share.
std::map<TokenId, double> shares(const SamplingParams& params, const std::vector<float>& logits,
                                 int n = 20000, const std::vector<TokenId>& prompt = {},
                                 const std::vector<TokenId>& reply = {}) {
  Sampler sampler(params, std::ssize(logits), /*choice=*/0);
  sampler.add_prompt(prompt);
  for (const TokenId token : reply) sampler.add_reply(token);
  std::map<TokenId, double> counts;
  for (int position = 0; position < n; ++position) {
    counts[sampler.draw(logits, static_cast<uint64_t>(position)).value()] += 1.0 / n;
  }
  return counts;
}

// Shares within four standard deviations of what 20,000 draws give, and no other token.
void expect_shares(const std::map<TokenId, double>& got, const std::map<TokenId, double>& want) {
  for (const auto& [token, share] : got) EXPECT_TRUE(want.contains(token)) << "token " << token;
  for (const auto& [token, share] : want) {
    const double found = got.contains(token) ? got.at(token) : 0.0;
    EXPECT_NEAR(found, share, 4 * std::sqrt(share * (1 - share) / 20000) + 1e-9) << token;
  }
}

TokenId greedy(SamplingParams params, const std::vector<float>& logits,
               const std::vector<TokenId>& prompt = {}, const std::vector<TokenId>& reply = {}) {
  params.temperature = 0;
  Sampler sampler(params, std::ssize(logits), 0);
  sampler.add_prompt(prompt);
  for (const TokenId token : reply) sampler.add_reply(token);
  return sampler.draw(logits, 0).value();
}

TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, MakesAUniformNumberOfTheFirstTwoWords) {
  const uint64_t bits = 0x6627e8d5e169c58d >> 11;  // seed, position and choice 0
  EXPECT_EQ(philox_uniform(0, 0, 0), static_cast<double>(bits) / 9007199254740992.0);
  // Position fills the low words of the counter, choice the high ones, the seed the key.
  EXPECT_EQ(philox_uniform(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            static_cast<double>(0xd16cfe0994fdcceb >> 11) / 9007199254740992.0);
}

TEST(Real64, ExpIsWithinTwoUlpOfTheTrueValue) {
  EXPECT_EQ(exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-1000.0), 0.0);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<double>::infinity()), 0.0);
  for (double x = 0.0; x > -708.0; x -= 0.00917) {
    const double want = std::exp(x);
    EXPECT_NEAR(exp_nonpositive(x), want, 2 * want * 0x1p-52) << x;
  }
  EXPECT_NEAR(exp_nonpositive(-740.0), std::exp(-740.0), 1e-323);
}

TEST(Real64, LogIsWithinTwoUlpOfTheTrueValue) {
  EXPECT_EQ(log_at_least_one(1.0), 0.0);
  for (double x = 1.0; x < 1e7; x *= 1.00113) {
    const double want = std::log(x);
    EXPECT_NEAR(log_at_least_one(x), want, 2 * want * 0x1p-52) << x;
  }
}

TEST(Sampler, GreedyTakesTheLargestLogitAndTheLowerIdOfATie) {
  EXPECT_EQ(greedy({}, {1.0f, 3.0f, 3.0f, 2.0f}), 1);
  EXPECT_EQ(argmax(std::vector<float>{1.0f, 3.0f, 3.0f, 2.0f}), 1);
}

TEST(Sampler, DrawsInProportionToTheSoftmax) {
  SamplingParams params{.temperature = 1.0};
  expect_shares(shares(params, logits_of({0.5, 0.25, 0.125, 0.125})),
                {{0, 0.5}, {1, 0.25}, {2, 0.125}, {3, 0.125}});
}

TEST(Sampler, DrawIsTheInverseCdfInRisingTokenId) {
  const std::vector<float> logits = logits_of({0.125, 0.5, 0.125, 0.25});
  Sampler sampler({.temperature = 1.0, .seed = 42}, 4, /*choice=*/3);
  for (uint64_t position = 0; position < 2000; ++position) {
    const double u = philox_uniform(42, position, 3);
    const TokenId want = u < 0.125 ? 0 : u < 0.625 ? 1 : u < 0.75 ? 2 : 3;
    EXPECT_EQ(sampler.draw(logits, position).value(), want) << u;
  }
}

TEST(Sampler, TemperatureDividesTheLogits) {
  // Square roots of 0.64, 0.32 / 2, ... : p^(1/2) is proportional to 4, 3, 2, 1.
  expect_shares(shares({.temperature = 2.0}, logits_of({16.0, 9.0, 4.0, 1.0})),
                {{0, 0.4}, {1, 0.3}, {2, 0.2}, {3, 0.1}});
  expect_shares(shares({.temperature = 1e-6}, {1.0f, 2.0f, 1.999f}), {{1, 1.0}});
}

TEST(Sampler, TopKKeepsTheMostLikelyAndTheLowerIdsOfATie) {
  expect_shares(shares({.temperature = 1.0, .top_k = 2}, logits_of({0.2, 0.4, 0.2, 0.2})),
                {{0, 1.0 / 3}, {1, 2.0 / 3}});
}

TEST(Sampler, TopPKeepsTheTokenThatReachesTheMass) {
  const auto logits = logits_of({0.125, 0.5, 0.25, 0.125});
  expect_shares(shares({.temperature = 1.0, .top_p = 0.6}, logits), {{1, 2.0 / 3}, {2, 1.0 / 3}});
  expect_shares(shares({.temperature = 1.0, .top_p = 0.8}, logits),
                {{0, 1.0 / 7}, {1, 4.0 / 7}, {2, 2.0 / 7}});
  expect_shares(shares({.temperature = 1.0, .top_p = 1e-9}, logits), {{1, 1.0}});
}

TEST(Sampler, MinPIsAShareOfTheBestToken) {
  expect_shares(shares({.temperature = 1.0, .min_p = 0.45}, logits_of({0.1, 0.5, 0.25, 0.15})),
                {{1, 2.0 / 3}, {2, 1.0 / 3}});
  expect_shares(shares({.temperature = 1.0, .min_p = 1.0}, {0.0f, 2.0f, 2.0f, 1.999f}),
                {{1, 0.5}, {2, 0.5}});
}

TEST(Sampler, TopKComesBeforeTopP) {
  // Among the two best, the first has 4/7 and reaches 0.5 alone; among all it would not.
  expect_shares(
      shares({.temperature = 1.0, .top_k = 2, .top_p = 0.5}, logits_of({0.4, 0.3, 0.2, 0.1})),
      {{0, 1.0}});
}

TEST(Sampler, TemperatureComesBeforeTopP) {
  // At temperature 2 the masses are 0.4, 0.3, 0.2, 0.1: 0.45 needs two tokens. At 1 one has 16/30.
  expect_shares(shares({.temperature = 2.0, .top_p = 0.45}, logits_of({16.0, 9.0, 4.0, 1.0})),
                {{0, 4.0 / 7}, {1, 3.0 / 7}});
}

TEST(Sampler, RepetitionPenaltyCoversPromptAndReplyAndBothSigns) {
  const SamplingParams params{.repetition_penalty = 2.0};
  EXPECT_EQ(greedy(params, {3.0f, 2.0f, 1.0f}), 0);
  EXPECT_EQ(greedy(params, {3.0f, 2.0f, 1.0f}, /*prompt=*/{0}), 1);
  EXPECT_EQ(greedy(params, {3.0f, 2.0f, 1.0f}, /*prompt=*/{0}, /*reply=*/{1}), 0);
  EXPECT_EQ(greedy(params, {-1.0f, -1.5f}, /*prompt=*/{0}), 1);  // -1 * 2 is below -1.5
}

TEST(Sampler, PresenceAndFrequencyPenaltiesSeeTheReplyOnly) {
  EXPECT_EQ(greedy({.presence_penalty = 1.5}, {3.0f, 2.0f}, /*prompt=*/{0}), 0);
  EXPECT_EQ(greedy({.presence_penalty = 1.5}, {3.0f, 2.0f}, {}, /*reply=*/{0}), 1);
  EXPECT_EQ(greedy({.presence_penalty = 0.9}, {3.0f, 2.0f}, {}, /*reply=*/{0, 0, 0}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.4}, {3.0f, 2.0f}, {}, /*reply=*/{0, 0}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.4}, {3.0f, 2.0f}, {}, /*reply=*/{0, 0, 0}), 1);
}

TEST(Sampler, RepetitionPenaltyComesBeforeThePresencePenalty) {
  // 4 / 2 - 1.5 = 0.5 loses against 0.8; (4 - 1.5) / 2 = 1.25 would win.
  EXPECT_EQ(greedy({.repetition_penalty = 2.0, .presence_penalty = 1.5}, {4.0f, 0.8f}, {}, {0}), 1);
}

TEST(Sampler, LogitBiasComesBeforeTheRepetitionPenalty) {
  // (-1 + 4) / 2 = 1.5 loses against 1.8; -1 * 2 + 4 = 2 would win.
  const SamplingParams params{.repetition_penalty = 2.0, .logit_bias = {{0, 4.0}}};
  EXPECT_EQ(greedy(params, {-1.0f, 1.8f}, /*prompt=*/{0}), 1);
  EXPECT_EQ(greedy({.logit_bias = {{2, 5.0}}}, {1.0f, 2.0f, 0.0f}), 2);
}

TEST(Sampler, PenaltiesActOnTheDrawnDistribution) {
  // ln 4 less presence ln 2 is ln 2: odds 2 to 1 to 1.
  const SamplingParams params{.temperature = 1.0, .presence_penalty = std::log(2.0)};
  expect_shares(shares(params, logits_of({4.0, 1.0, 1.0}), 20000, {}, {0}),
                {{0, 0.5}, {1, 0.25}, {2, 0.25}});
}

TEST(Sampler, SeedPositionAndChoiceEachChangeTheDraws) {
  const std::vector<float> logits(64, 0.0f);
  const auto draws = [&](uint64_t seed, uint64_t choice) {
    Sampler sampler({.temperature = 1.0, .seed = seed}, 64, choice);
    std::vector<TokenId> tokens;
    for (uint64_t p = 0; p < 16; ++p) tokens.push_back(sampler.draw(logits, p).value());
    return tokens;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
  const auto first = draws(1, 0);
  EXPECT_GT(std::ranges::count_if(first, [&](TokenId t) { return t != first[0]; }), 8);
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  Sampler sampler({.temperature = 1.0}, 2, 0);
  const auto drawn = sampler.draw(std::vector<float>{std::nanf(""), 1.0f}, 7);
  ASSERT_FALSE(drawn.ok());
  EXPECT_EQ(drawn.error().code, Code::kCorrupt);
  EXPECT_NE(drawn.error().what.find("position 7"), std::string::npos);
}

TEST(Sampler, RawLogprobsAreTheLogSoftmaxWhateverTheParameters) {
  const std::vector<float> logits = logits_of({0.5, 0.25, 0.125, 0.125});
  EXPECT_NEAR(raw_logprob(logits, 1), std::log(0.25), 1e-7);
  const std::vector<float> far = {0.0f, 1000.0f};
  EXPECT_EQ(raw_logprob(far, 0), -1000.0);
  EXPECT_EQ(raw_logprob(far, 1), 0.0);
}

TEST(SamplingParams, OutOfRangeValuesAreRefusedByName) {
  const auto refused = [](const SamplingParams& params) {
    const Status status = validate(params, 10);
    return status.ok() ? std::string("accepted") : status.error().what;
  };
  EXPECT_EQ(refused({}), "accepted");
  EXPECT_EQ(refused({.temperature = 1.0, .top_p = 0.95}), "accepted");
  const double nan = std::nan("");
  EXPECT_NE(refused({.temperature = -1.0}).find("temperature"), std::string::npos);
  EXPECT_NE(refused({.temperature = nan}).find("temperature"), std::string::npos);
  EXPECT_NE(refused({.top_k = -1}).find("top-k"), std::string::npos);
  EXPECT_NE(refused({.top_p = 0.0}).find("top-p"), std::string::npos);
  EXPECT_NE(refused({.top_p = nan}).find("top-p"), std::string::npos);
  EXPECT_NE(refused({.min_p = 1.5}).find("min-p"), std::string::npos);
  EXPECT_NE(refused({.repetition_penalty = 0.0}).find("repetition"), std::string::npos);
  EXPECT_NE(refused({.presence_penalty = nan}).find("presence"), std::string::npos);
  EXPECT_NE(refused({.frequency_penalty = nan}).find("frequency"), std::string::npos);
  EXPECT_NE(refused({.logit_bias = {{10, 1.0}}}).find("token 10"), std::string::npos);
  EXPECT_NE(refused({.logit_bias = {{1, nan}}}).find("bias"), std::string::npos);
}

}  // namespace
}  // namespace sluice
