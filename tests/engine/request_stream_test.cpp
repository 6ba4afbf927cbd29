// Events between two threads: in order, once, and nothing after the end.
#include "engine/request_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice {
namespace {

TEST(RequestStream, JoinsWhatCameSinceTheLastTake) {
  RequestStream stream;
  stream.push({.reasoning = "a", .text = "x"}, {});
  stream.push({.reasoning = "b", .text = "y"}, {});
  const ReplyEvents events = stream.take();
  EXPECT_EQ(events.delta.reasoning, "ab");
  EXPECT_EQ(events.delta.text, "xy");
  EXPECT_FALSE(events.end);
  EXPECT_TRUE(stream.take().delta.empty());
}

TEST(RequestStream, TheFirstEndCountsAndNothingFollowsIt) {
  RequestStream stream;
  EXPECT_TRUE(stream.finish({.finish = FinishReason::kCancelled, .error = {}, .usage = {}}));
  EXPECT_FALSE(stream.finish({.finish = FinishReason::kStop, .error = {}, .usage = {}}));
  stream.push({.reasoning = "", .text = "late"}, {});
  stream.set_progress({.phase = RequestPhase::kDecoding});
  const ReplyEvents events = stream.take();
  ASSERT_TRUE(events.end);
  EXPECT_EQ(events.end->finish, FinishReason::kCancelled);
  EXPECT_TRUE(events.delta.empty());
  EXPECT_EQ(stream.progress().phase, RequestPhase::kDone);
}

TEST(RequestStream, WakesWhoeverWaitsAndAtOnceWhenThereIsSomething) {
  RequestStream stream;
  int calls = 0;
  stream.on_ready([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  stream.push({.reasoning = "", .text = "x"}, {});
  EXPECT_EQ(calls, 2);
  const RequestProgress progress{.phase = RequestPhase::kPrefill, .prompt_done = 3};
  stream.set_progress(progress);
  stream.set_progress(progress);
  EXPECT_EQ(calls, 3);  // the same twice is no news
  stream.set_progress({.phase = RequestPhase::kPrefill, .prompt_done = 3, .new_tokens = 1});
  EXPECT_EQ(calls, 3);  // nor is a token more: its text is
  EXPECT_EQ(stream.progress().new_tokens, 1);
  stream.on_ready(nullptr);
  stream.push({.reasoning = "", .text = "y"}, {});
  EXPECT_EQ(calls, 3);
}

TEST(RequestStream, LosesNothingBetweenTwoThreads) {
  RequestStream stream;
  std::atomic<int> wakes{0};
  stream.on_ready([&] { ++wakes; });
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) stream.push({.reasoning = "", .text = "x"}, {});
    stream.finish({});
  });
  std::string text;
  for (bool ended = false; !ended;) {
    const ReplyEvents events = stream.take();
    text += events.delta.text;
    ended = events.end.has_value();
  }
  producer.join();
  EXPECT_EQ(text.size(), 1000u);
  EXPECT_GE(wakes, 1000);
}

}  // namespace
}  // namespace sluice
