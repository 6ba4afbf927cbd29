#include "app/option_checks.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "app/option_values.h"

namespace sluice {
namespace {

Status check_thinking(const ReplyOptions& reply) {
  constexpr std::string_view kEfforts[] = {"", "low", "high", "max"};
  if (std::ranges::find(kEfforts, reply.reasoning_effort) == std::end(kEfforts)) {
    return usage("--reasoning-effort \"" + reply.reasoning_effort +
                 "\" is not one of low, high, max");
  }
  if (reply.no_thinking && !reply.reasoning_effort.empty()) {
    return usage("--no-thinking and --reasoning-effort exclude each other: drop one");
  }
  return Ok{};
}

}  // namespace

Status check_run(const RunOptions& run) {
  const int prompts = run.prompt.has_value() + run.prompt_file.has_value() + run.ids.has_value() +
                      run.messages.has_value();
  constexpr const char* kPrompts = "one of --prompt, --prompt-file, --ids, --messages";
  if (prompts == 0) return usage(std::string("no prompt: give ") + kPrompts);
  if (prompts > 1) return usage(std::string("several prompts: give only ") + kPrompts);
  if (run.chat && run.ids) return usage("--chat needs text: give --prompt instead of --ids");
  const bool chat = run.chat || run.messages;
  if (!run.system.empty() && !run.chat) return usage("--system is for --chat; add --chat");
  if (!run.system.empty() && run.messages) {
    return usage("--system and --messages exclude each other: put the system message in the file");
  }
  if (!run.reasoning_effort.empty() && !chat) {
    return usage("--reasoning-effort is for chats; add --chat");
  }
  if (run.no_thinking && !chat) return usage("--no-thinking is for chats; add --chat");
  return check_thinking(run);
}

Status check_chat(const ChatOptions& chat) { return check_thinking(chat); }

Status check_serve(const ServeOptions& serve) {
  constexpr std::string_view kLoopback[] = {"localhost", "127.0.0.1", "::1"};
  const bool local = std::ranges::find(kLoopback, serve.host) != std::end(kLoopback);
  const bool keys = !serve.api_keys.empty() || !serve.api_key_file.empty();
  if (keys && serve.no_auth) return usage("--no-auth and API keys exclude each other: drop one");
  if (!local && !keys && !serve.no_auth) {
    return usage("--host \"" + serve.host +
                 "\" can be reached from elsewhere: give --api-key or --api-key-file, or --no-auth "
                 "if everyone may use it");
  }
  for (const std::string& key : serve.api_keys) {
    if (key.empty()) return usage("--api-key is empty; give a key");
  }
  return Ok{};
}

Status check_bench(const BenchOptions& bench) {
  if (bench.kind.empty()) return usage("no bench: give decode, rows, io or cache");
  if (bench.kind == "cache" && bench.trace.empty()) {
    return usage("bench cache needs --trace FILE, as run --trace-routes writes it");
  }
  return Ok{};
}

Status check_verify(const VerifyOptions& verify) {
  if (!verify.anchors) return usage("nothing to verify: give --anchors");
  if (verify.engine.spine == SpineChoice::kInt8) {
    return usage("--anchors are numbers of the bf16 spine; drop --spine int8");
  }
  return Ok{};
}

}  // namespace sluice
