// Whole requests on the bundled model: its golden replies, whatever the memory and the threads; how
// a reply ends; and that nothing outlasts a request.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "engine/tiny_engine.h"
#include "format/safetensors.h"
#include "io/temp_directory.h"

namespace sluice {
namespace {

// The least memory that tiny_options() runs with on `threads`, each of which has scratch of its
// own: nine rows a pass, one layer and two experts at a time.
EngineOptions floor_options(int threads = tiny_options().threads) {
  EngineOptions options = tiny_options();
  options.threads = threads;
  const auto report = make_plan_report(options);
  EXPECT_TRUE(report.ok());
  options.ram_bytes = report.value().plan.memory.floor_bytes;
  return options;
}

GenerateReply run(Engine& engine, const GenerateRequest& request) {
  return engine.generate(request, nullptr, nullptr);
}

void expect_golden(Engine& engine, const Golden& want) {
  const GenerateReply reply = run(engine, greedy_request(want));
  EXPECT_EQ(reply.ids, want.greedy) << want.name;
  EXPECT_FALSE(reply.error.has_value());
}

// 24 tokens at temperature 1.2 from "The capital of France is".
GenerateRequest sampled_request(uint64_t seed) {
  GenerateRequest request = greedy_request(golden("raw_france"));
  request.tokens.max_new = 24;
  request.tokens.sampling = {.temperature = 1.2, .top_k = 200, .top_p = 0.98, .seed = seed};
  return request;
}

TEST(Generate, GreedyRepliesAreTheGoldenOnes) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const auto goldens = read_goldens();
  EXPECT_EQ(goldens.size(), 15u);
  for (const Golden& want : goldens) {
    const GenerateReply reply = run(*engine, greedy_request(want));
    EXPECT_EQ(reply.ids, want.greedy) << want.name;
    EXPECT_EQ(reply.text, want.text) << want.name;
    const bool ended = want.greedy.back() == engine->config().eos_token_id;
    EXPECT_EQ(reply.finish, ended ? FinishReason::kStop : FinishReason::kLength) << want.name;
  }
}

TEST(Generate, TheFloorOfMemoryGivesTheSameReplies) {
  const auto engine = open_engine(floor_options());
  ASSERT_TRUE(engine);
  EXPECT_LT(engine->plan().memory.rows_max, 20);  // so every long prompt runs in many chunks
  EXPECT_EQ(engine->plan().memory.n_pinned(), 0);
  for (const char* name : {"raw_long", "raw_one_token", "chat_weather_result"}) {
    expect_golden(*engine, golden(name));
  }
}

TEST(Generate, SeededSamplingIsTheSameWithAnyThreadsAndMemory) {
  const auto engine = open_engine(tiny_options());
  const auto other = open_engine(floor_options(/*threads=*/3));
  ASSERT_TRUE(engine && other);
  std::set<std::vector<TokenId>> replies;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const std::vector<TokenId> ids = run(*engine, sampled_request(seed)).ids;
    EXPECT_EQ(run(*engine, sampled_request(seed)).ids, ids);
    EXPECT_EQ(run(*other, sampled_request(seed)).ids, ids);
    replies.insert(ids);
  }
  EXPECT_EQ(replies.size(), 3u);
}

TEST(Generate, TextArrivesInPiecesThatJoinToTheReply) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const Golden want = golden("raw_unicode");
  std::string joined;
  int pieces = 0;
  const GenerateReply reply =
      engine->generate(greedy_request(want), nullptr, [&](const TextDelta& delta) {
        joined += delta.text;
        ++pieces;
      });
  EXPECT_EQ(joined, want.text);
  EXPECT_EQ(reply.text, want.text);
  EXPECT_GT(pieces, 10);
}

TEST(Generate, EndsAtAStopIdWhichIsKept) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const Golden want = golden("raw_france");
  GenerateRequest request = greedy_request(want);
  request.tokens.stop_ids = {want.greedy[4]};
  const GenerateReply reply = run(*engine, request);
  EXPECT_EQ(reply.ids, std::vector<TokenId>(want.greedy.begin(), want.greedy.begin() + 5));
  EXPECT_EQ(reply.finish, FinishReason::kStop);
}

TEST(Generate, EndsBeforeAStopString) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  GenerateRequest request = greedy_request(golden("raw_france"));
  request.stop_strings = {"Tower is", "France is"};
  const GenerateReply reply = run(*engine, request);
  EXPECT_EQ(reply.text, " Paris. The Eiffel ");
  EXPECT_EQ(reply.finish, FinishReason::kStop);
}

TEST(Generate, TheContextEndsAReplyAndRefusesALongerPrompt) {
  EngineOptions options = tiny_options();
  options.context_positions = 12;
  const auto engine = open_engine(options);
  ASSERT_TRUE(engine);
  const GenerateReply reply =
      run(*engine, greedy_request(golden("raw_france")));  // 5 tokens of prompt
  EXPECT_EQ(reply.ids.size(), 7u);
  EXPECT_EQ(reply.finish, FinishReason::kLength);

  const GenerateReply refused = run(*engine, greedy_request(golden("raw_code")));  // 13 tokens
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->code, Code::kBudget);
  EXPECT_NE(refused.error->what.find("--context"), std::string::npos);
  EXPECT_TRUE(refused.ids.empty());
}

TEST(Generate, NoTokensAreMadeWhenNoneAreAskedFor) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  GenerateRequest request = greedy_request(golden("raw_france"));
  request.tokens.max_new = 0;
  const GenerateReply reply = run(*engine, request);
  EXPECT_TRUE(reply.ids.empty());
  EXPECT_EQ(reply.finish, FinishReason::kLength);
}

TEST(Generate, RefusedRequestsNameTheFaultAndLeaveTheEngineUsable) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const auto refusal = [&](std::vector<TokenId> prompt, SamplingParams sampling) {
    const GenerateReply reply = run(
        *engine,
        {.tokens = {.prompt = std::move(prompt), .max_new = 4, .sampling = std::move(sampling)}});
    EXPECT_EQ(reply.finish, FinishReason::kError);
    return reply.error ? reply.error->what : std::string();
  };
  EXPECT_NE(refusal({}, {}).find("empty"), std::string::npos);
  EXPECT_NE(refusal({1, 4096}, {}).find("4096"), std::string::npos);
  EXPECT_NE(refusal({-1}, {}).find("-1"), std::string::npos);
  EXPECT_NE(refusal({1}, {.top_p = 0.0}).find("top-p"), std::string::npos);
  expect_golden(*engine, golden("raw_planet"));
}

TEST(Generate, CancelKeepsWhatWasMadeAndLeavesTheEngineUsable) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const Golden want = golden("raw_planet");
  std::atomic<bool> cancel = false;
  std::string seen;
  const GenerateReply reply =
      engine->generate(greedy_request(want), &cancel, [&](const TextDelta& delta) {
        seen += delta.text;
        cancel = true;
      });
  EXPECT_EQ(reply.finish, FinishReason::kCancelled);
  EXPECT_FALSE(reply.error.has_value());
  ASSERT_FALSE(reply.ids.empty());
  EXPECT_LT(reply.ids.size(), want.greedy.size());
  EXPECT_TRUE(std::ranges::equal(reply.ids, std::span(want.greedy).first(reply.ids.size())));
  EXPECT_EQ(reply.text, seen);

  const GenerateReply before_start = engine->generate(greedy_request(want), &cancel, nullptr);
  EXPECT_EQ(before_start.finish, FinishReason::kCancelled);
  EXPECT_TRUE(before_start.ids.empty());
  expect_golden(*engine, want);
}

TEST(Generate, AReadErrorEndsTheRequestAndLeavesTheEngineUsable) {
  const TempDirectory copy;
  std::filesystem::copy(tiny_path(), copy.path());
  const auto shard = copy.path() / "model-00005-of-000010.safetensors";
  const auto bytes = std::filesystem::file_size(shard);
  EngineOptions options = floor_options();
  options.model = copy.path();
  const auto engine = open_engine(options);
  ASSERT_TRUE(engine);
  const Golden want = golden("raw_france");
  const GenerateReply reply =
      engine->generate(greedy_request(want), nullptr,
                       [&](const TextDelta&) { std::filesystem::resize_file(shard, bytes / 2); });
  EXPECT_EQ(reply.finish, FinishReason::kError);
  ASSERT_TRUE(reply.error.has_value());
  EXPECT_NE(reply.error->what.find("model-00005"), std::string::npos) << reply.error->what;
  ASSERT_FALSE(reply.ids.empty());
  EXPECT_EQ(reply.ids[0], want.greedy[0]);

  // The engine holds the file open: its bytes come back in place.
  std::ifstream whole(tiny_path() / shard.filename(), std::ios::binary);
  std::ofstream(shard, std::ios::binary) << whole.rdbuf();
  expect_golden(*engine, want);
}

TEST(Generate, TwoEnginesInOneProcessDoNotDisturbEachOther) {
  const auto first = open_engine(tiny_options());
  const auto second = open_engine(floor_options());
  ASSERT_TRUE(first && second);
  const Golden one = golden("raw_france");
  const Golden two = golden("raw_days");
  bool ran = false;
  const GenerateReply reply = first->generate(greedy_request(one), nullptr, [&](const TextDelta&) {
    if (!ran) expect_golden(*second, two);  // in the middle of the other's reply
    ran = true;
  });
  EXPECT_TRUE(ran);
  EXPECT_EQ(reply.ids, one.greedy);
}

TEST(Generate, StatsCountThisRequestAlone) {
  const auto engine = open_engine(floor_options());
  ASSERT_TRUE(engine);
  const GenerateRequest request = greedy_request(golden("raw_france"));
  const GenerateStats first = run(*engine, request).stats;
  const GenerateStats second = run(*engine, request).stats;
  EXPECT_EQ(first.prompt_tokens, 5);
  EXPECT_EQ(first.new_tokens, 32);
  EXPECT_GT(first.prefill_s, 0.0);
  EXPECT_GE(first.ttft_s, first.prefill_s);
  EXPECT_GE(first.total_s, first.ttft_s);
  EXPECT_GT(first.decode_tok_s, 0.0);
  // Every pass streams nine layers; the last token needs none.
  EXPECT_GT(first.bytes_read, 32u * 1000000u);
  EXPECT_NEAR(static_cast<double>(second.bytes_read), static_cast<double>(first.bytes_read),
              0.02 * static_cast<double>(first.bytes_read));
  EXPECT_GE(first.expert_hits + first.expert_misses, 31u * 64u);  // 8 experts in 8 layers
}

TEST(Capture, HoldsEveryTensorOfTheGoldensWithItsShape) {
  const auto engine = open_engine(tiny_options());
  ASSERT_TRUE(engine);
  const auto captured = engine->capture(golden("raw_planet").prompt, nullptr);
  ASSERT_TRUE(captured.ok());
  const auto file = File::open(tiny_path() / "goldens.safetensors", Direct::kOff);
  ASSERT_TRUE(file.ok());
  int compared = 0;
  const auto visit = [&](std::string_view name, const TensorInfo& info) -> Status {
    constexpr std::string_view kPrefix = "raw_planet.";
    if (!name.starts_with(kPrefix)) return Ok{};
    const std::string key(name.substr(kPrefix.size()));
    const auto& tensors = captured.value().tensors();
    const auto found = tensors.find(key);
    EXPECT_TRUE(found != tensors.end() && found->second.shape == info.shape) << key;
    ++compared;
    return Ok{};
  };
  ASSERT_TRUE(read_safetensors_header(*file.value(), visit).ok());
  EXPECT_EQ(compared, 32);
  expect_golden(*engine, golden("raw_planet"));
}

TEST(Capture, RefusesAPromptThatNeedsSeveralPasses) {
  const auto engine = open_engine(floor_options());
  ASSERT_TRUE(engine);
  const auto captured = engine->capture(golden("raw_long").prompt, nullptr);
  ASSERT_FALSE(captured.ok());
  EXPECT_EQ(captured.error().code, Code::kBudget);
  EXPECT_NE(captured.error().what.find("--ram"), std::string::npos);
}

}  // namespace
}  // namespace sluice
