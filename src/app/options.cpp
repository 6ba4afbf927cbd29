#include "app/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "app/default_model.h"
#include "app/numbers.h"
#include "app/option_checks.h"
#include "app/option_values.h"
#include "base/size.h"

namespace sluice {
namespace {

constexpr int64_t kCountMax = int64_t{1} << 40;

// Values are parsed by our own strict functions: CLI11 reads 010 as 8 and "[EOS]" as a list. The
// first value that does not parse becomes the error of the command line.
class Parser {
 public:
  explicit Parser(CLI::App& app, std::optional<Error>& problem) : app_(app), problem_(problem) {}

  void text(const char* name, std::string& out, const char* help) {
    value(name, help, [&out](const std::string& text) -> Status {
      out = text;
      return Ok{};
    });
  }
  void text(const char* name, std::optional<std::string>& out, const char* help) {
    value(name, help, [&out](const std::string& text) -> Status {
      out = text;
      return Ok{};
    });
  }
  template <class T>
  void number(const char* name, T& out, T least, T most, const char* help) {
    value(name, help, [&out, name, least, most](const std::string& text) -> Status {
      TRY(out, parse_number<T>(name, text, least, most));
      return Ok{};
    })->type_name("N");
  }
  void flag(const char* name, bool& out, const char* help) { app_.add_flag(name, out, help); }
  void action(const char* name, const char* help, std::function<void()> act) {
    app_.add_flag_callback(name, std::move(act), help);
  }

  template <class Parse>
  void size(const char* name, const char* help, Parse parse) {
    value(name, help, parse)->type_name("SIZE");
  }
  // May be given several times; `parse` sees every value in order.
  template <class Parse>
  void values(const char* name, const char* help, Parse parse) {
    const auto each = [this, parse](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) note(parse(text));
    };
    app_.add_option_function<std::vector<std::string>>(name, each, help)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  template <class Parse>
  CLI::Option* value(const char* name, const char* help, Parse parse) {
    return app_
        .add_option_function<std::string>(
            name, [this, parse](const std::string& text) { note(parse(text)); }, help)
        ->allow_extra_args(false);
  }

 private:
  void note(Status status) {
    if (!status.ok() && !problem_) problem_ = status.error();
  }

  CLI::App& app_;
  std::optional<Error>& problem_;
};

// The user's cache directory, or nothing when the environment names none.
std::filesystem::path cache_home() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/')
    return cache;  // a relative one is to be ignored (XDG base directories)
  const char* home = std::getenv("HOME");
  if (home && *home) return std::filesystem::path(home) / ".cache";
  return {};
}

// What commands that do not compute take too.
void add_files(Parser& parser, EngineOptions& engine) {
  engine.cache_home = cache_home();
  parser.value("MODEL", "Snapshot directory (default: the bundled tiny-k3)",
               [&engine](const std::string& text) -> Status {
                 if (text.empty()) return usage("MODEL is an empty path; name a directory");
                 engine.model = text;
                 return Ok{};
               });
  parser.value("--work-dir", "Directory for what is made of the model (default: MODEL/.sluice)",
               [&engine](const std::string& text) -> Status {
                 if (text.empty()) return usage("--work-dir is an empty path; name a directory");
                 engine.work_dir = text;
                 return Ok{};
               });
  parser.number<int>("--threads", engine.threads, 1, 1024,
                     "Compute threads (default: the physical cores)");
  parser.action("--no-direct", "Read through the page cache",
                [&engine] { engine.direct = Direct::kOff; });
}

void add_engine(Parser& parser, EngineOptions& engine) {
  add_files(parser, engine);
  parser.size("--ram", "Memory to use, e.g. 64GiB (default: 80 % of the host's limit)",
              [&engine](const std::string& text) -> Status {
                TRY(engine.ram_bytes, parse_size(text));
                if (engine.ram_bytes == 0) return usage("--ram must be above 0");
                return Ok{};
              });
  parser.value("--spine", "Format of the resident weights: auto, bf16, int8",
               [&engine](const std::string& text) { return parse_spine(text, engine.spine); });
  parser.value("--isa", "Kernel table: auto, scalar, avx2, avx512, neon",
               [&engine](const std::string& text) { return parse_isa(text, engine.isa); });
  parser.size("--expert-cache", "Memory for routed experts, e.g. 20GiB (default: what is left)",
              [&engine](const std::string& text) -> Status {
                TRY(engine.expert_cache_bytes, parse_size(text));
                return Ok{};
              });
  parser.number<int64_t>("--context", engine.context_positions, 1, kCountMax,
                         "Positions that prompt and reply may take (default: by memory)");
  parser.number<float>("--qkv-norm-eps", engine.qkv_norm_eps, 1e-12f, 0.1f,
                       "eps of the q_a and kv_a norms (default: 1e-5)");
}

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

void add_emulation(Parser& parser, EngineOptions& engine) {
  parser.value("--emulate-drive",
               "RATE[,latency=80us][,drives=N]: generated weights from drives that do not exist",
               [&engine](const std::string& text) -> Status {
                 TRY(engine.emulated_drives, parse_emulated_drives(text));
                 return Ok{};
               })
      ->type_name("RATE");
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

void add_serve(Parser& parser, ServeOptions& serve) {
  add_engine(parser, serve.engine);
  parser.text("--host", serve.host, "Address to listen on (default: 127.0.0.1)");
  parser.number<uint16_t>("--port", serve.port, 0, std::numeric_limits<uint16_t>::max(),
                          "Port to listen on; 0 takes a free one (default: 8000)");
  parser.values("--api-key", "Key that clients must send; may be given several times",
                [&serve](const std::string& text) -> Status {
                  serve.api_keys.push_back(text);
                  return Ok{};
                });
  parser.text("--api-key-file", serve.api_key_file, "File of such keys, one a line");
  parser.flag("--no-auth", serve.no_auth, "Let everyone who reaches the address use it");
  parser.text("--model-name", serve.model_name, "Name for clients (default: the directory's)");
  parser.text("--cors-origin", serve.cors_origin,
              "Web pages of this origin may use the server, e.g. https://example.org (default: none)");
  parser.number<int64_t>("--parallel", serve.engine.sequences, 1, 1024,
                         "Requests computed at once (default: by memory)");
  parser.number<int64_t>("--queue", serve.queue, 0, kCountMax,
                         "Requests that may wait for a place (default: 64)");
  parser.number<double>("--max-pass-time", serve.pass_s_max, 0.0, kSamplingMax,
                        "Seconds that prompts may make other replies wait for their next token "
                        "(default: 0, as long again as without them)");
  parser.number<double>("--drain-timeout", serve.drain_timeout_s, 0.0, kSamplingMax,
                        "Seconds that running requests get after SIGTERM (default: 300)");
  parser.number<int64_t>("--max-connections", serve.max_connections, 1, kCountMax,
                         "HTTP connections at once (default: 4096)");
  parser.flag("--quiet", serve.quiet, "No line on standard error for each request");
  parser.flag("--log-prompts", serve.log_prompts, "Write the requests' bodies on standard error");
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Everything the parse fills, at stable addresses for the callbacks.
struct Parsed {
  RunOptions run;
  ChatOptions chat;
  ServeOptions serve;
  PlanOptions plan;
  ConvertOptions convert;
  VerifyOptions verify;
  VersionOptions version;
  bool version_flag = false;
  std::optional<Error> problem;
};

// The command that was given, or null.
const CLI::App* given_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? nullptr : commands.front();
}

Result<CommandLine> finish(const CLI::App* command, Parsed& parsed) {
  if (parsed.problem) return *parsed.problem;
  const std::string name = command ? command->get_name() : "version";
  for (EngineOptions* engine : {&parsed.run.engine, &parsed.chat.engine, &parsed.serve.engine, &parsed.plan.engine,
                                &parsed.convert.engine, &parsed.verify.engine}) {
    if (engine->model.empty()) engine->model = default_model();
  }
  if (name == "run") {
    TRY_OK(check_run(parsed.run));
    return CommandLine{std::move(parsed.run)};
  }
  if (name == "chat") {
    TRY_OK(check_chat(parsed.chat));
    return CommandLine{std::move(parsed.chat)};
  }
  if (name == "serve") {
    TRY_OK(check_serve(parsed.serve));
    return CommandLine{std::move(parsed.serve)};
  }
  if (name == "plan") return CommandLine{std::move(parsed.plan)};
  if (name == "convert") return CommandLine{std::move(parsed.convert)};
  if (name == "verify") {
    TRY_OK(check_verify(parsed.verify));
    return CommandLine{std::move(parsed.verify)};
  }
  return CommandLine{parsed.version};
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("sluice: mixture-of-experts language models larger than memory", "sluice");
  Parsed parsed;
  app.add_flag("--version", parsed.version_flag, "The same as the command version");
  CLI::App& run = *app.add_subcommand("run", "Generate from one prompt");
  CLI::App& chat = *app.add_subcommand("chat", "Talk with the model");
  CLI::App& serve = *app.add_subcommand("serve", "Serve the model by an OpenAI-shaped HTTP API");
  CLI::App& plan = *app.add_subcommand("plan", "Show the memory plan and the predicted speed");
  CLI::App& convert = *app.add_subcommand("convert", "Make the int8 pack of a model's spine");
  CLI::App& verify = *app.add_subcommand("verify", "Check a model against published numbers");
  CLI::App& version = *app.add_subcommand("version", "Show the version and what this CPU can run");
  app.require_subcommand(0, 1);

  Parser run_parser(run, parsed.problem), plan_parser(plan, parsed.problem);
  Parser chat_parser(chat, parsed.problem), serve_parser(serve, parsed.problem);
  Parser convert_parser(convert, parsed.problem), version_parser(version, parsed.problem);
  Parser verify_parser(verify, parsed.problem);
  add_run(run_parser, parsed.run);
  add_reply(chat_parser, parsed.chat, "System message at the start of the conversation");
  add_serve(serve_parser, parsed.serve);
  serve.set_config("--config", "", "File of these options, one a line: port = 8000");
  serve.allow_config_extras(CLI::config_extras_mode::error);
  add_engine(plan_parser, parsed.plan.engine);
  plan_parser.value("--disk", "Read rate of the drive, e.g. 7.3GB/s, for the predicted speed",
                    [&parsed](const std::string& text) -> Status {
                      TRY(parsed.plan.disk_bytes_s, parse_rate(text));
                      return Ok{};
                    });
  plan_parser.value("--drives", "Such drives in use at once (default 1)",
                    [&parsed](const std::string& text) -> Status {
                      TRY(parsed.plan.drives, parse_number<int64_t>("--drives", text, 1, 64));
                      return Ok{};
                    });
  plan_parser.value("--hit", "Share of a token's experts found in memory, 0 to 1 (default: as published)",
                    [&parsed](const std::string& text) -> Status {
                      TRY(parsed.plan.hit, parse_number<double>("--hit", text, 0.0, 1.0));
                      return Ok{};
                    });
  plan_parser.flag("--json", parsed.plan.json, "Print one JSON object");
  add_convert(convert_parser, parsed.convert);
  add_verify(verify_parser, parsed.verify);
  version_parser.flag("--json", parsed.version.json, "Print one JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{HelpText{app.help()}};
  } catch (const CLI::ParseError& error) {
    const CLI::App* used = given_command(app);
    return usage(one_line(error.what()) + "; see sluice " +
                 (used ? used->get_name() + " --help" : std::string("--help")));
  }
  const CLI::App* command = given_command(app);
  if (!command && !parsed.version_flag) {
    return usage("no command: give run, chat, serve, plan, convert, verify or version; see sluice --help");
  }
  return finish(command, parsed);
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
