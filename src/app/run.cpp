// sluice run: one prompt in, one reply out, as text while it comes or as one JSON object at its
// end.
#include <memory>
#include <string>
#include <utility>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/output.h"
#include "app/prompt.h"
#include "app/reply_printer.h"
#include "app/stats.h"
#include "app/write_file.h"
#include "base/json.h"
#include "engine/engine.h"

namespace sluice {
namespace {

Json stats_json(const GenerateStats& stats, const Engine& engine) {
  const EnginePlan& plan = engine.plan();
  return {{"prompt_tokens", stats.prompt_tokens},
          {"new_tokens", stats.new_tokens},
          {"prefill_s", stats.prefill_s},
          {"ttft_s", stats.ttft_s},
          {"decode_tok_s", stats.decode_tok_s},
          {"bytes_read", stats.bytes_read},
          {"read_gb_s", stats.read_gb_s()},
          {"expert_hits", stats.expert_hits},
          {"expert_misses", stats.expert_misses},
          {"spine", plan.spine()},
          {"ram", plan.memory.ram_bytes},
          {"isa", plan.table->name},
          {"threads", plan.threads},
          {"context", plan.context_positions},
          {"direct", engine.direct()},
          {"draft_proposed", stats.draft_proposed},
          {"draft_accepted", stats.draft_accepted}};
}

Json reply_json(const Prompt& prompt, const GenerateReply& reply, const Engine& engine) {
  Json json = {{"prompt_ids", prompt.ids},
               {"ids", reply.ids},
               {"text", reply.text},
               {"reasoning", reply.reasoning}};
  for (const ReplyCall& call : reply.tool_calls) {
    json["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  json["finish_reason"] = finish_reason_name(reply.finish);
  json["stats"] = stats_json(reply.stats, engine);
  if (engine.emulated() != nullptr) {
    const EmulatedDrive::Stats drive = engine.emulated()->stats();
    json["stats"]["emulated"] = {{"reads", drive.reads},
                                 {"bytes", drive.bytes},
                                 {"busy_s", drive.busy_s},
                                 {"late_reads", drive.late_reads},
                                 {"late_s", drive.late_s}};
  }
  return json;
}

Status dump(Engine& engine, const Prompt& prompt, const std::string& path) {
  TRY(const Capture capture, engine.capture(prompt.ids, &interrupt_flag()));
  return write_file_whole(path, capture.safetensors());
}

GenerateRequest make_request(const RunOptions& options, const Prompt& prompt) {
  return {
      .tokens = {.prompt = prompt.ids, .max_new = options.max_new, .sampling = options.sampling},
      .stop_strings = options.stop,
      .form = prompt.form};
}

// Whether anything was computed: otherwise there is no reply to show.
bool has_begun(const GenerateReply& reply) { return reply.stats.prompt_tokens > 0; }

}  // namespace

Result<int> run_command(const RunOptions& options) {
  TRY(const PromptSource source, read_prompt(options));
  TRY(const std::unique_ptr<Engine> engine, Engine::open(options.engine));
  TRY(const Prompt prompt, tokenise(source, engine->tokenizer()));
  if (!options.json) {
    print_note("spine " + engine->plan().spine() + " (" + engine->plan().spine_reason + ")");
  }
  install_interrupt();
  if (!options.dump.empty()) {
    const Status dumped = dump(*engine, prompt, options.dump);
    if (!dumped.ok() && dumped.error().code == Code::kCancelled) return kExitInterrupted;
    TRY_OK(dumped);
  }

  ReplyPrinter printer(
      {.thinking = options.show_thinking || stdout_is_terminal(), .colour = stdout_has_colour()});
  const auto show = [&](const TextDelta& delta) {
    if (options.json) return;
    printer.print(delta);
    if (!printer.status().ok()) interrupt_flag() = true;  // nobody reads on: stop computing
  };
  const GenerateReply reply =
      engine->generate(make_request(options, prompt), &interrupt_flag(), show);
  if (has_begun(reply)) {
    if (options.json) {
      TRY_OK(write_out(dump_json(reply_json(prompt, reply, *engine)) + "\n"));
    } else {
      printer.finish(reply);
    }
    if (options.stats) print_stats(reply.stats, *engine);
  }
  TRY_OK(printer.status());
  if (reply.error) return *reply.error;
  return reply.finish == FinishReason::kCancelled ? kExitInterrupted : kExitDone;
}

}  // namespace sluice
