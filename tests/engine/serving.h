// A scheduler on the bundled model, and replies collected from it or made alone by an Engine.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler.h"
#include "engine/tiny_engine.h"

namespace sluice {

inline EngineOptions serving_options(int64_t sequences) {
  EngineOptions options = tiny_options();
  options.sequences = sequences;
  options.score_rows = 16;
  return options;
}

struct Serving {
  std::unique_ptr<LoadedModel> loaded;
  std::unique_ptr<Scheduler> scheduler;
};

inline Serving open_serving(const EngineOptions& options, SchedulerOptions scheduling = {}) {
  auto loaded = LoadedModel::open(options);
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().what);
  if (!loaded.ok()) return {};
  Serving serving{.loaded = std::move(loaded).value(), .scheduler = nullptr};
  serving.scheduler = std::make_unique<Scheduler>(*serving.loaded, scheduling);
  return serving;
}

// Everything that a stream gave.
struct Collected {
  TextDelta delta;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  ReplyEnd end;
  std::string arguments;  // of all calls
};

// Waits for the end of the stream, a minute at most.
inline Collected collect(RequestStream& stream) {
  std::mutex mutex;
  std::condition_variable woken;
  bool news = false;
  stream.on_ready([&] {
    std::lock_guard lock(mutex);
    news = true;
    woken.notify_one();
  });
  Collected all;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (true) {
    {
      std::unique_lock lock(mutex);
      if (!woken.wait_until(lock, deadline, [&] { return news; })) {
        ADD_FAILURE() << "no end within a minute";
        break;
      }
      news = false;
    }
    ReplyEvents events = stream.take();
    all.delta.reasoning += events.delta.reasoning;
    all.delta.text += events.delta.text;
    for (CallDelta& call : events.delta.calls) {
      all.arguments += call.arguments;
      all.delta.calls.push_back(std::move(call));
    }
    for (auto& entry : events.logprobs) all.logprobs.push_back(std::move(entry));
    for (auto& entry : events.prompt_logprobs) all.prompt_logprobs.push_back(std::move(entry));
    if (!events.end) continue;
    all.end = *events.end;
    break;
  }
  stream.on_ready(nullptr);
  return all;
}

// Waits until `condition` holds, ten seconds at most.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::shared_ptr<RequestStream> submit_one(Scheduler& scheduler, ServeRequest request) {
  std::vector<ServeRequest> requests;
  requests.push_back(std::move(request));
  Submitted submitted = scheduler.submit(std::move(requests));
  EXPECT_EQ(submitted.admission, Admission::kAccepted);
  return submitted.streams.at(0);
}

inline GenerateRequest alone(const ServeRequest& request) {
  return {.tokens = request.tokens, .stop_strings = request.stop_strings, .form = request.form};
}

inline void expect_same_reply(const Collected& got, const GenerateReply& want,
                              const std::string& which) {
  EXPECT_EQ(got.delta.text, want.text) << which;
  EXPECT_EQ(got.delta.reasoning, want.reasoning) << which;
  std::string arguments;
  for (const ReplyCall& call : want.tool_calls) arguments += call.arguments;
  EXPECT_EQ(got.arguments, arguments) << which;
  EXPECT_EQ(got.end.finish, want.finish) << which;
  EXPECT_EQ(got.end.usage.new_tokens, std::ssize(want.ids)) << which;
}

}  // namespace sluice
