#include "app/options.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "app/default_model.h"
#include "app/option_checks.h"
#include "app/option_values.h"
#include "app/options_parser.h"

namespace sluice {
namespace {

void add_convert(Parser& parser, ConvertOptions& convert) {
  add_files(parser, convert.engine);
  parser.value("--spine", "Format to make: int8 (default)", [](const std::string& text) -> Status {
    if (text == "int8") return Ok{};
    return usage("--spine \"" + text + "\" is not what convert makes; give int8");
  });
}

void add_verify(Parser& parser, VerifyOptions& verify) {
  add_engine(parser, verify.engine);
  parser.flag("--anchors", verify.anchors,
              "Compute the published numbers of the released Kimi K3 from its shards");
  parser.number<int64_t>("--layers", verify.n_layers_max, 1, kCountMax,
                         "Only the first N layers (default: all whose shards are there)");
}

void add_plan(Parser& parser, PlanOptions& plan) {
  add_engine(parser, plan.engine);
  parser.value("--disk", "Read rate of the drive, e.g. 7.3GB/s, for the predicted speed",
               [&plan](const std::string& text) -> Status {
                 TRY(plan.disk_bytes_s, parse_rate(text));
                 return Ok{};
               });
  parser.number<int64_t>("--drives", plan.drives, 1, 64, "Such drives in use at once (default: 1)");
  parser.value("--hit",
               "Share of a token's experts found in memory, 0 to 1 (default: as published)",
               [&plan](const std::string& text) -> Status {
                 TRY(plan.hit, parse_number<double>("--hit", text, 0.0, 1.0));
                 return Ok{};
               });
  parser.flag("--json", plan.json, "Print one JSON object");
}

void add_version(Parser& parser, VersionOptions& version) {
  parser.flag("--json", version.json, "Print one JSON object");
}

void add_sampling(Parser& parser, SamplingParams& sampling, std::vector<std::string>& stop) {
  parser.number<double>("--temperature", sampling.temperature, 0.0, kSamplingMax,
                        "0 takes the most likely token every time (default)");
  parser.number<int64_t>("--top-k", sampling.top_k, 0, kCountMax,
                         "Draw among the K most likely tokens (default: 0, all)");
  parser.number<double>("--top-p", sampling.top_p, 0.0, 1.0,
                        "Draw among the most likely tokens of this total probability (default: 1)");
  parser.number<double>("--min-p", sampling.min_p, 0.0, 1.0,
                        "Leave out tokens below this share of the best one's probability");
  parser.number<uint64_t>("--seed", sampling.seed, 0, std::numeric_limits<uint64_t>::max(),
                          "The same seed draws the same reply (default: 0)");
  parser.number<double>("--repetition-penalty", sampling.repetition_penalty, 1e-6, kSamplingMax,
                        "Above 1: tokens of the prompt and the reply become less likely");
  parser.number<double>("--presence-penalty", sampling.presence_penalty, -kSamplingMax,
                        kSamplingMax, "Taken off the logit of each token of the reply");
  parser.number<double>("--frequency-penalty", sampling.frequency_penalty, -kSamplingMax,
                        kSamplingMax,
                        "Taken off the logit of each token of the reply for each time it occurs");
  parser.values(
      "--logit-bias", "ID=BIAS[,ID=BIAS...]: added to logits",
      [&sampling](const std::string& text) { return parse_logit_bias(text, sampling.logit_bias); });
  parser.values("--stop", "End the reply before this text; may be given several times",
                [&stop](const std::string& text) -> Status {
                  if (text.empty())
                    return usage("--stop is an empty text; give the text to stop at");
                  stop.push_back(text);
                  return Ok{};
                });
}

// What every command that answers takes.
void add_reply(Parser& parser, ReplyOptions& reply, const char* system_help) {
  add_engine(parser, reply.engine);
  add_emulation(parser, reply.engine);
  parser.text("--system", reply.system, system_help);
  parser.text("--reasoning-effort", reply.reasoning_effort, "low, high or max (chat)");
  parser.flag("--no-thinking", reply.no_thinking, "Answer without a thinking channel (chat)");
  parser.flag("--show-thinking", reply.show_thinking,
              "Print the thinking too when standard output is no terminal");
  parser.number<int64_t>(
      "--max-new", reply.max_new, 0, kCountMax,
      ("Most tokens to generate (default: " + std::to_string(reply.max_new) + ")").c_str());
  add_sampling(parser, reply.sampling, reply.stop);
  parser.flag("--stats", reply.stats, "Print times and bytes on standard error");
}

void add_run(Parser& parser, RunOptions& run) {
  add_reply(parser, run, "System message before the prompt (with --chat)");
  parser.text("--prompt", run.prompt, "Text to go on from, or with --chat a user's message");
  parser.text("--prompt-file", run.prompt_file, "The same from a file; - is standard input");
  parser.text("--ids", run.ids, "Token ids to go on from: 1,2,3");
  parser.text(
      "--messages", run.messages,
      "JSON file {messages, tools, tool_choice, response_format, ...}; - is standard input");
  parser.flag("--chat", run.chat, "Send the prompt as a user's message and print the answer");
  parser.flag("--json", run.json, "Print one JSON object");
  parser.text("--dump", run.dump,
              "Write the prompt's intermediate tensors to this safetensors file");
}

void add_chat(Parser& parser, ChatOptions& chat) {
  add_reply(parser, chat, "System message at the start of the conversation");
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// One command: what it takes, and the values once all is parsed.
struct Command {
  const char* name;
  const char* help;
  std::function<void(Parser&)> add;
  std::function<Result<CommandLine>()> finish;
};

template <class Options>
Command command(const char* name, const char* help, void (*add)(Parser&, Options&),
                Status (*check)(const Options&)) {
  const auto options = std::make_shared<Options>();
  return {name, help, [options, add](Parser& parser) { add(parser, *options); },
          [options, check]() -> Result<CommandLine> {
            if constexpr (requires { options->engine; }) {
              if (options->engine.model.empty()) options->engine.model = default_model();
            }
            if (check) TRY_OK(check(*options));
            return CommandLine{std::move(*options)};
          }};
}

std::vector<Command> all_commands() {
  return {
      command<RunOptions>("run", "Generate from one prompt", add_run, check_run),
      command<ChatOptions>("chat", "Talk with the model", add_chat, check_chat),
      command<ServeOptions>("serve", "Serve the model by an OpenAI-shaped HTTP API", add_serve,
                            check_serve),
      command<PlanOptions>("plan", "Show the memory plan and the predicted speed", add_plan,
                           nullptr),
      command<ConvertOptions>("convert", "Make the int8 pack of a model's spine", add_convert,
                              nullptr),
      command<VerifyOptions>("verify", "Check a model against published numbers", add_verify,
                             check_verify),
      command<BenchOptions>("bench", "Measure: decode, rows, io or cache, as JSON lines", add_bench,
                            check_bench),
      command<VersionOptions>("version", "Show the version and what this CPU can run", add_version,
                              nullptr),
  };
}

// "run, chat or version"
std::string names_of(const std::vector<Command>& commands) {
  std::string names;
  for (size_t i = 0; i < commands.size(); ++i) {
    if (i > 0) names += i + 1 < commands.size() ? ", " : " or ";
    names += commands[i].name;
  }
  return names;
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("sluice: mixture-of-experts language models larger than memory", "sluice");
  bool version_flag = false;
  app.add_flag("--version", version_flag, "The same as the command version");
  app.require_subcommand(0, 1);
  std::optional<Error> problem;
  const std::vector<Command> commands = all_commands();
  std::vector<std::unique_ptr<Parser>> parsers;
  for (const Command& command : commands) {
    CLI::App& sub = *app.add_subcommand(command.name, command.help);
    parsers.push_back(std::make_unique<Parser>(sub, problem));
    command.add(*parsers.back());
  }
  const auto given = [&] {
    return std::ranges::find_if(
        commands, [&](const Command& command) { return app.got_subcommand(command.name); });
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{HelpText{app.help()}};
  } catch (const CLI::ParseError& error) {
    const auto used = given();
    return usage(one_line(error.what()) + "; see sluice " +
                 (used == commands.end() ? "" : used->name + std::string(" ")) + "--help");
  }
  if (problem) return *problem;
  if (const auto used = given(); used != commands.end()) return used->finish();
  if (version_flag) return CommandLine{VersionOptions{}};
  return usage("no command: give " + names_of(commands) + "; see sluice --help");
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }
bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

bool stdout_has_colour() {
  const char* term = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  const bool unwanted = no_colour && *no_colour;
  const bool dumb = !term || std::string_view(term) == "dumb";
  return stdout_is_terminal() && !unwanted && !dumb;
}

}  // namespace sluice
