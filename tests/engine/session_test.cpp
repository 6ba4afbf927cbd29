// Requests that go on from each other: the ids are those of an engine that has never seen the
// beginning, and only new tokens are computed.
#include "engine/session.h"

#include <gtest/gtest.h>

#include "engine/tiny_engine.h"
#include "io/temp_directory.h"

namespace sluice {
namespace {

GenerateRequest request_of(std::vector<TokenId> prompt, double temperature = 0.0) {
  return {.tokens = {.prompt = std::move(prompt),
                     .max_new = 12,
                     .sampling = {.temperature = temperature, .seed = 7}}};
}

std::vector<TokenId> joined(std::vector<TokenId> a, std::span<const TokenId> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The ids of an engine that knows nothing.
std::vector<TokenId> cold(const GenerateRequest& request) {
  const auto engine = open_engine(tiny_options());
  return engine->generate(request, nullptr, nullptr).ids;
}

class Resume : public ::testing::Test {
 protected:
  // Runs the request, compares with a cold engine, and returns how many tokens were known.
  int64_t run(const GenerateRequest& request) {
    reply_ = engine_->generate(request, nullptr, nullptr);
    EXPECT_FALSE(reply_.error.has_value());
    EXPECT_EQ(reply_.ids, cold(request));
    EXPECT_EQ(reply_.stats.prompt_tokens, std::ssize(request.tokens.prompt));
    return reply_.stats.reused_tokens;
  }

  std::unique_ptr<Engine> engine_ = open_engine(tiny_options());
  const std::vector<TokenId> prompt_ = golden("raw_days").prompt;
  const std::vector<TokenId> more_ = golden("raw_code").prompt;
  GenerateReply reply_;
};

TEST_F(Resume, AReplyThatIsInTheNextPromptIsNotComputedAgain) {
  for (const double temperature : {0.0, 1.0}) {
    engine_ = open_engine(tiny_options());
    std::vector<TokenId> prompt = prompt_;
    EXPECT_EQ(run(request_of(prompt, temperature)), 0);
    for (int turn = 0; turn < 3; ++turn) {
      const std::vector<TokenId> read = joined(prompt, reply_.ids);
      prompt = joined(read, more_);
      // The last token of a reply is drawn but not computed.
      EXPECT_EQ(run(request_of(prompt, temperature)), std::ssize(read) - 1);
    }
  }
}

TEST_F(Resume, AReplyThatIsWrittenOtherwiseCostsNoMoreThanItself) {
  EXPECT_EQ(run(request_of(prompt_)), 0);
  const std::vector<TokenId> rewritten = joined(prompt_, std::vector<TokenId>{5, 6, 7});
  EXPECT_EQ(run(request_of(joined(rewritten, more_))), std::ssize(prompt_));
}

TEST_F(Resume, AnotherBeginningIsComputedFromTheStart) {
  EXPECT_EQ(run(request_of(prompt_)), 0);
  EXPECT_EQ(run(request_of(more_)), 0);
  EXPECT_EQ(run(request_of(joined(prompt_, more_))), 0);
  std::vector<TokenId> shorter = joined(prompt_, more_);
  shorter.pop_back();
  EXPECT_EQ(run(request_of(shorter)), 0);
  EXPECT_EQ(run(request_of(shorter)), 0);  // no token would be left to compute
}

TEST_F(Resume, AnInterruptedReplyIsGoneOnFrom) {
  std::atomic<bool> cancel = false;
  const GenerateReply reply =
      engine_->generate(request_of(prompt_), &cancel, [&](const TextDelta&) { cancel = true; });
  ASSERT_EQ(reply.finish, FinishReason::kCancelled);
  ASSERT_FALSE(reply.ids.empty());
  EXPECT_GE(run(request_of(joined(joined(prompt_, reply.ids), more_))), std::ssize(prompt_));
}

TEST_F(Resume, APromptInterruptedBetweenItsPassesIsGoneOnFrom) {
  EngineOptions options = tiny_options();
  options.ram_bytes = engine_->plan().memory.floor_bytes;
  engine_ = open_engine(options);
  ASSERT_LT(engine_->plan().memory.rows_max, 20);
  const std::vector<TokenId> prompt = golden("raw_long").prompt;
  EXPECT_EQ(run(request_of(prompt_)), 0);
  std::atomic<bool> cancel = true;
  EXPECT_EQ(engine_->generate(request_of(joined(prompt_, prompt)), &cancel, nullptr).finish,
            FinishReason::kCancelled);
  // The pass that was cancelled has changed nothing, but it may have written over the mark.
  EXPECT_EQ(run(request_of(joined(prompt_, prompt))), std::ssize(prompt_));
}

TEST_F(Resume, ACaptureLeavesAStateThatIsKnown) {
  ASSERT_TRUE(engine_->capture(prompt_, nullptr).ok());
  EXPECT_EQ(run(request_of(joined(prompt_, more_))), std::ssize(prompt_));
}

TEST_F(Resume, ASavedStateGoesOnInAnotherEngine) {
  const TempDirectory directory;
  EXPECT_EQ(run(request_of(prompt_, 1.0)), 0);
  const std::vector<TokenId> read = joined(prompt_, reply_.ids);
  const std::vector<TokenId> next = joined(read, more_);
  EXPECT_EQ(engine_->known_tokens(next), std::ssize(read) - 1);
  const auto saved = engine_->save_state(directory.path() / "states", next);
  ASSERT_TRUE(saved.ok()) << saved.error().what;
  EXPECT_EQ(saved.value().n_tokens, std::ssize(read) - 1);

  EngineOptions other = tiny_options();
  other.isa = "scalar";
  other.threads = 3;
  other.ram_bytes = 0;
  other.context_positions = 512;
  engine_ = open_engine(other);
  EXPECT_EQ(engine_->known_tokens(next), 0);
  const auto loaded = engine_->load_state(saved.value().path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().what;
  EXPECT_EQ(loaded.value(), std::ssize(read) - 1);
  EXPECT_EQ(run(request_of(next, 1.0)), std::ssize(read) - 1);
}

TEST_F(Resume, WhatASaveFindsKnownIsWhatItWrites) {
  const TempDirectory directory;
  EXPECT_EQ(run(request_of(prompt_)), 0);
  const std::vector<TokenId> otherwise = joined(prompt_, more_);  // not what the reply says
  const auto saved = engine_->save_state(directory.path(), otherwise);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved.value().n_tokens, std::ssize(prompt_));
  EXPECT_EQ(run(request_of(otherwise)), std::ssize(prompt_));
}

TEST_F(Resume, AStateOfAnotherEpsIsRefusedAndNothingIsKnownAfterIt) {
  const TempDirectory directory;
  EXPECT_EQ(run(request_of(prompt_)), 0);
  const auto saved = engine_->save_state(directory.path(), joined(prompt_, more_));
  ASSERT_TRUE(saved.ok());
  EngineOptions options = tiny_options();
  options.qkv_norm_eps = 1e-6f;
  const auto other = open_engine(options);
  other->generate(request_of(prompt_), nullptr, nullptr);
  const auto loaded = other->load_state(saved.value().path);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, Code::kUnsupported);
  EXPECT_EQ(other->known_tokens(joined(prompt_, more_)), 0);
}

}  // namespace
}  // namespace sluice
