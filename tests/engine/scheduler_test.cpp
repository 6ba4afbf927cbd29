// Many requests in the same passes: every reply is that of the request alone, whoever joins, leaves
// or is put back meanwhile.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "engine/serving.h"

namespace sluice {
namespace {

// A request of any kind, by its number.
ServeRequest random_request(std::mt19937& random, const std::vector<Golden>& goldens) {
  const auto pick = [&](int n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  const Golden& golden = goldens[static_cast<size_t>(pick(static_cast<int>(goldens.size())))];
  ServeRequest request{.tokens = {.prompt = golden.prompt, .max_new = 1 + pick(24)}};
  if (pick(2) == 1) {
    request.tokens.sampling = {.temperature = 1.1, .top_k = 100, .top_p = 0.95, .seed = random()};
    request.tokens.choice = static_cast<uint64_t>(pick(3));
    if (pick(2) == 1) request.tokens.sampling.repetition_penalty = 1.2;
  }
  if (golden.name.starts_with("chat")) {
    request.form = golden.name.ends_with("nothink") ? ReplyForm::kAnswer : ReplyForm::kThinking;
    request.tokens.max_new += 40;
  }
  if (pick(4) == 0) request.stop_strings = {"is", "the "};
  if (pick(4) == 0) request.logprobs = pick(4);
  return request;
}

// Submits `n` random requests at random times, cancels some, and compares the others with `engine`.
void expect_law(Serving& serving, Engine& engine, int n, uint32_t seed) {
  std::mt19937 random(seed);
  const std::vector<Golden> goldens = read_goldens();
  std::vector<ServeRequest> requests;
  std::vector<std::shared_ptr<RequestStream>> streams;
  std::vector<bool> cancelled;
  for (int i = 0; i < n; ++i) {
    requests.push_back(random_request(random, goldens));
    ASSERT_TRUE(serving.scheduler->validate(requests.back()).ok());
    streams.push_back(submit_one(*serving.scheduler, requests.back()));
    cancelled.push_back(random() % 5 == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    if (cancelled.back()) serving.scheduler->cancel(*streams[random() % streams.size()]);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    const Collected got = collect(*streams[i]);
    const GenerateReply want = engine.generate(alone(requests[i]), nullptr, nullptr);
    if (got.end.finish == FinishReason::kCancelled) {
      EXPECT_TRUE(want.text.starts_with(got.delta.text)) << i;
      EXPECT_TRUE(want.reasoning.starts_with(got.delta.reasoning)) << i;
      continue;
    }
    expect_same_reply(got, want, std::to_string(i));
  }
  EXPECT_TRUE(serving.scheduler->wait_idle(10));
}

TEST(Scheduler, RandomArrivalsGetTheRepliesOfEachRequestAlone) {
  Serving serving = open_serving(serving_options(5), {.queue_max = 100});
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(serving.scheduler && engine);
  expect_law(serving, *engine, 40, /*seed=*/1);
  const ServingStats stats = serving.scheduler->stats();
  EXPECT_GT(stats.passes, 0u);
  EXPECT_GT(stats.pass_rows, stats.passes);
  EXPECT_EQ(stats.preempted, 0u);
}

TEST(Scheduler, AFullPoolPutsTheYoungestBackAndChangesNoReply) {
  EngineOptions options = serving_options(6);
  options.context_positions = 512;
  options.ram_bytes = uint64_t{32} << 20;  // of which a sixteenth, eight pages, is the pool
  Serving serving = open_serving(options, {.queue_max = 100});
  ASSERT_TRUE(serving.scheduler);
  EngineOptions engine_options = tiny_options();
  engine_options.context_positions = 512;
  const auto engine = open_engine(engine_options);
  const int64_t pool = serving.loaded->plan().pool_positions;
  const Golden seed = golden("raw_france");
  std::vector<ServeRequest> requests;
  std::vector<std::shared_ptr<RequestStream>> streams;
  // Each grows over the border of a page; together they need more than the pool has.
  for (int64_t i = 0; i < pool / kPagePositions + 2; ++i) {
    ServeRequest request{.tokens = {.prompt = {}, .max_new = 24}};
    while (std::ssize(request.tokens.prompt) < 250) {
      for (const TokenId id : seed.prompt) request.tokens.prompt.push_back(id);
    }
    request.tokens.prompt.push_back(static_cast<TokenId>(100 + i));
    requests.push_back(request);
    streams.push_back(submit_one(*serving.scheduler, request));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    expect_same_reply(collect(*streams[i]), engine->generate(alone(requests[i]), nullptr, nullptr),
                      std::to_string(i));
  }
  EXPECT_GT(serving.scheduler->stats().preempted, 0u);
}

TEST(Scheduler, TheQueueIsBoundedAndOrdered) {
  Serving serving = open_serving(serving_options(1), {.queue_max = 2});
  ASSERT_TRUE(serving.scheduler);
  Scheduler& scheduler = *serving.scheduler;
  ServeRequest request{.id = "a", .tokens = {.prompt = golden("raw_long").prompt, .max_new = 300}};
  const auto first = submit_one(scheduler, request);
  request.id = "b";
  const auto second = submit_one(scheduler, request);
  request.id = "c";
  const auto third = submit_one(scheduler, request);
  ASSERT_TRUE(eventually([&] { return first->progress().phase != RequestPhase::kQueued; }));
  EXPECT_EQ(scheduler.submit({request}).admission, Admission::kQueueFull);
  EXPECT_EQ(scheduler.stats().refused, 1u);
  EXPECT_EQ(second->progress().queue_position, 1);
  EXPECT_EQ(third->progress().queue_position, 2);
  const auto list = scheduler.requests();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].id, "a");
  EXPECT_EQ(list[2].id, "c");
  EXPECT_EQ(list[2].progress.queue_position, 2);

  EXPECT_EQ(scheduler.cancel("b"), 1);
  EXPECT_EQ(scheduler.cancel("b"), 0);
  EXPECT_EQ(third->progress().queue_position, 1);
  EXPECT_EQ(collect(*second).end.finish, FinishReason::kCancelled);
  scheduler.cancel("a");
  EXPECT_EQ(collect(*first).end.finish, FinishReason::kCancelled);
  ASSERT_TRUE(eventually([&] { return third->progress().phase != RequestPhase::kQueued; }));
  scheduler.cancel("c");
  EXPECT_TRUE(scheduler.wait_idle(10));
}

TEST(Scheduler, TellsHowFarAReplyIsWhileItIsMadeAndWhenItIsCancelled) {
  Serving serving = open_serving(serving_options(1));
  ASSERT_TRUE(serving.scheduler);
  ServeRequest request{.id = "a", .tokens = {.prompt = golden("raw_long").prompt, .max_new = 700}};
  request.tokens.sampling.logit_bias = {{serving.loaded->config().eos_token_id, -100.0}};
  const auto stream = submit_one(*serving.scheduler, request);
  ASSERT_TRUE(eventually([&] { return stream->progress().new_tokens >= 5; }));
  serving.scheduler->cancel("a");
  const ReplyEnd end = collect(*stream).end;
  EXPECT_EQ(end.finish, FinishReason::kCancelled);
  EXPECT_GE(end.usage.new_tokens, 5);
}

TEST(Scheduler, SeveralRequestsAreTakenTogetherOrNotAtAll) {
  Serving serving = open_serving(serving_options(1), {.queue_max = 1});
  ASSERT_TRUE(serving.scheduler);
  const ServeRequest request{.tokens = {.prompt = golden("raw_france").prompt, .max_new = 2}};
  EXPECT_EQ(serving.scheduler->submit({request, request, request}).admission,
            Admission::kQueueFull);
  const Submitted two = serving.scheduler->submit({request, request});
  ASSERT_EQ(two.admission, Admission::kAccepted);
  for (const auto& stream : two.streams) EXPECT_EQ(collect(*stream).end.usage.new_tokens, 2);
}

TEST(Scheduler, ADrainedOneFinishesWhatItHasAndTakesNoMore) {
  Serving serving = open_serving(serving_options(1));
  ASSERT_TRUE(serving.scheduler);
  const ServeRequest request{.tokens = {.prompt = golden("raw_france").prompt, .max_new = 20}};
  const Submitted two = serving.scheduler->submit({request, request});
  serving.scheduler->drain();
  EXPECT_EQ(serving.scheduler->submit({request}).admission, Admission::kDraining);
  EXPECT_TRUE(serving.scheduler->wait_idle(30));
  for (const auto& stream : two.streams)
    EXPECT_EQ(collect(*stream).end.finish, FinishReason::kLength);
}

TEST(Scheduler, ItsEndIsTheEndOfEveryRequest) {
  Serving serving = open_serving(serving_options(2));
  ASSERT_TRUE(serving.scheduler);
  const ServeRequest request{.tokens = {.prompt = golden("raw_long").prompt, .max_new = 700}};
  const Submitted five = serving.scheduler->submit({request, request, request, request, request});
  ASSERT_TRUE(eventually([&] { return five.streams[1]->progress().new_tokens > 0; }));
  EXPECT_FALSE(serving.scheduler->wait_idle(0.01));
  serving.scheduler.reset();
  for (const auto& stream : five.streams) {
    EXPECT_EQ(collect(*stream).end.finish, FinishReason::kCancelled);
  }
}

TEST(Scheduler, RefusesWhatCannotBeRun) {
  Serving serving = open_serving(serving_options(2));
  ASSERT_TRUE(serving.scheduler);
  const auto code = [&](std::vector<TokenId> prompt, double top_p) {
    const Status status = serving.scheduler->validate(
        {.tokens = {.prompt = std::move(prompt), .max_new = 1, .sampling = {.top_p = top_p}}});
    return status.ok() ? std::nullopt : std::optional(status.error().code);
  };
  EXPECT_EQ(code({1, 2}, 1.0), std::nullopt);
  EXPECT_EQ(code({}, 1.0), Code::kInvalid);
  EXPECT_EQ(code({-1}, 1.0), Code::kInvalid);
  EXPECT_EQ(code({1}, 2.0), Code::kInvalid);
  EXPECT_EQ(code(std::vector<TokenId>(1024, 1), 1.0), Code::kBudget);
}

TEST(Scheduler, NoTokensAskedForAreNoneMade) {
  Serving serving = open_serving(serving_options(2));
  ASSERT_TRUE(serving.scheduler);
  const auto stream = submit_one(*serving.scheduler,
                                 {.tokens = {.prompt = golden("raw_france").prompt, .max_new = 0}});
  const Collected got = collect(*stream);
  EXPECT_EQ(got.end.finish, FinishReason::kLength);
  EXPECT_EQ(got.end.usage.new_tokens, 0);
  EXPECT_EQ(serving.scheduler->stats().passes, 0u);
}

TEST(Scheduler, PromptLogprobsAreThoseOfEachPrefixHoweverThePromptIsCut) {
  Serving serving = open_serving(serving_options(3));
  ASSERT_TRUE(serving.scheduler);
  const std::vector<TokenId> prompt = golden("raw_unicode").prompt;  // 40 tokens, 16 logit rows
  ServeRequest request{
      .tokens = {.prompt = prompt, .max_new = 0}, .logprobs = 2, .prompt_logprobs = true};
  const Collected whole = collect(*submit_one(*serving.scheduler, request));
  ASSERT_EQ(whole.prompt_logprobs.size(), prompt.size() - 1);
  EXPECT_EQ(whole.end.usage.new_tokens, 0);
  for (size_t i = 1; i < prompt.size(); i += 7) {
    EXPECT_EQ(whole.prompt_logprobs[i - 1].token.id, prompt[i]);
    // The chance of token i is that of drawing it after the tokens before it.
    ServeRequest prefix{
        .tokens = {.prompt = {prompt.begin(), prompt.begin() + static_cast<long>(i)}, .max_new = 1},
        .logprobs = 4096};
    const Collected one = collect(*submit_one(*serving.scheduler, prefix));
    ASSERT_EQ(one.logprobs.size(), 1u);
    for (const TokenChance& chance : one.logprobs[0].top) {
      if (chance.id == prompt[i]) {
        EXPECT_NEAR(chance.logprob, whole.prompt_logprobs[i - 1].token.logprob, 1e-9) << i;
      }
    }
    EXPECT_EQ(one.logprobs[0].top[0].id, whole.prompt_logprobs[i - 1].top[0].id) << i;
  }
}

TEST(Scheduler, ChoicesOfOneRequestDifferAndAreTheirOwn) {
  Serving serving = open_serving(serving_options(3));
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(serving.scheduler && engine);
  std::vector<ServeRequest> choices;
  for (uint64_t i = 0; i < 3; ++i) {
    choices.push_back({.tokens = {.prompt = golden("raw_france").prompt,
                                  .max_new = 20,
                                  .sampling = {.temperature = 1.5, .seed = 7},
                                  .choice = i}});
  }
  const Submitted three = serving.scheduler->submit(choices);
  std::set<std::string> texts;
  for (size_t i = 0; i < 3; ++i) {
    const Collected got = collect(*three.streams[i]);
    expect_same_reply(got, engine->generate(alone(choices[i]), nullptr, nullptr),
                      std::to_string(i));
    texts.insert(got.delta.text);
  }
  EXPECT_EQ(texts.size(), 3u);
}

TEST(Scheduler, ReasoningTokensAreCounted) {
  Serving serving = open_serving(serving_options(1));
  ASSERT_TRUE(serving.scheduler);
  const Golden italy = golden("chat_italy");
  const auto run = [&](int64_t max_new) {
    return collect(*submit_one(
        *serving.scheduler,
        {.tokens = {.prompt = italy.prompt, .max_new = max_new}, .form = ReplyForm::kThinking}));
  };
  // Cut inside the thinking: all tokens are its, and the answer is empty.
  const Collected cut = run(6);
  EXPECT_EQ(cut.end.usage.reasoning_tokens, 6);
  EXPECT_EQ(cut.end.finish, FinishReason::kLength);
  EXPECT_EQ(cut.delta.text, "");
  EXPECT_NE(cut.delta.reasoning, "");
  const Collected whole = run(100);
  EXPECT_EQ(whole.end.finish, FinishReason::kStop);
  const Tokenizer& tokenizer = serving.loaded->tokenizer();
  EXPECT_EQ(whole.end.usage.reasoning_tokens, std::ssize(tokenizer.encode(whole.delta.reasoning)));
}

}  // namespace
}  // namespace sluice
