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
#include "base/size.h"

namespace sluice {
namespace {

constexpr double kDoubleMax = 1e6;  // the sampler's own bound
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

Error usage(std::string what) { return Error{Code::kInvalid, std::move(what)}; }

Status parse_spine(const std::string& text, SpineChoice& out) {
  const std::pair<const char*, SpineChoice> names[] = {
      {"auto", SpineChoice::kAuto}, {"bf16", SpineChoice::kBf16}, {"int8", SpineChoice::kInt8}};
  for (const auto& [name, choice] : names) {
    if (text != name) continue;
    out = choice;
    return Ok{};
  }
  return usage("--spine \"" + text + "\" is not one of auto, bf16, int8");
}

Status parse_isa(const std::string& text, std::string& out) {
  constexpr std::string_view kNames[] = {"auto", "scalar", "avx2", "avx512", "neon"};
  if (std::ranges::find(kNames, text) == std::end(kNames)) {
    return usage("--isa \"" + text + "\" is not one of auto, scalar, avx2, avx512, neon");
  }
  out = text;
  return Ok{};
}

// "ID=BIAS" or several of them with commas between.
Status parse_logit_bias(std::string_view text, std::vector<LogitBias>& out) {
  while (true) {
    const std::string_view entry = text.substr(0, text.find(','));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      return usage("--logit-bias \"" + std::string(entry) + "\" is not of the form ID=BIAS");
    }
    LogitBias bias;
    TRY(bias.id, parse_number<TokenId>("--logit-bias id", entry.substr(0, equals), 0,
                                       std::numeric_limits<TokenId>::max()));
    TRY(bias.bias, parse_number<double>("--logit-bias value", entry.substr(equals + 1), -kDoubleMax,
                                        kDoubleMax));
    out.push_back(bias);
    if (entry.size() == text.size()) return Ok{};
    text.remove_prefix(entry.size() + 1);
  }
}

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
  parser.number<double>("--temperature", sampling.temperature, 0.0, kDoubleMax,
                        "0 takes the most likely token every time (default)");
  parser.number<int64_t>("--top-k", sampling.top_k, 0, kCountMax,
                         "Draw among the K most likely tokens (default: 0, all)");
  parser.number<double>("--top-p", sampling.top_p, 0.0, 1.0,
                        "Draw among the most likely tokens of this total probability (default: 1)");
  parser.number<double>("--min-p", sampling.min_p, 0.0, 1.0,
                        "Leave out tokens below this share of the best one's probability");
  parser.number<uint64_t>("--seed", sampling.seed, 0, std::numeric_limits<uint64_t>::max(),
                          "The same seed draws the same reply (default: 0)");
  parser.number<double>("--repetition-penalty", sampling.repetition_penalty, 1e-6, kDoubleMax,
                        "Above 1: tokens of the prompt and the reply become less likely");
  parser.number<double>("--presence-penalty", sampling.presence_penalty, -kDoubleMax, kDoubleMax,
                        "Taken off the logit of each token of the reply");
  parser.number<double>("--frequency-penalty", sampling.frequency_penalty, -kDoubleMax, kDoubleMax,
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

void add_run(Parser& parser, RunOptions& run) {
  parser.text("--prompt", run.prompt, "Text to go on from, or with --chat a user's message");
  parser.text("--prompt-file", run.prompt_file, "The same from a file; - is standard input");
  parser.text("--ids", run.ids, "Token ids to go on from: 1,2,3");
  parser.text(
      "--messages", run.messages,
      "JSON file {messages, tools, tool_choice, response_format, ...}; - is standard input");
  parser.flag("--chat", run.chat, "Send the prompt as a user's message and print the answer");
  parser.text("--system", run.system, "System message before the prompt (with --chat)");
  parser.text("--reasoning-effort", run.reasoning_effort, "low, high or max (chat)");
  parser.flag("--no-thinking", run.no_thinking, "Answer without a thinking channel (chat)");
  parser.flag("--show-thinking", run.show_thinking,
              "Print the thinking too when standard output is no terminal");
  parser.number<int64_t>("--max-new", run.max_new, 0, kCountMax,
                         "Most tokens to generate (default: 256)");
  add_sampling(parser, run.sampling, run.stop);
  parser.flag("--json", run.json, "Print one JSON object");
  parser.flag("--stats", run.stats, "Print times and bytes on standard error");
  parser.text("--dump", run.dump,
              "Write the prompt's intermediate tensors to this safetensors file");
}

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
  constexpr std::string_view kEfforts[] = {"", "low", "high", "max"};
  if (std::ranges::find(kEfforts, run.reasoning_effort) == std::end(kEfforts)) {
    return usage("--reasoning-effort \"" + run.reasoning_effort +
                 "\" is not one of low, high, max");
  }
  if (run.no_thinking && !chat) return usage("--no-thinking is for chats; add --chat");
  if (run.no_thinking && !run.reasoning_effort.empty()) {
    return usage("--no-thinking and --reasoning-effort exclude each other: drop one");
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

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Everything the parse fills, at stable addresses for the callbacks.
struct Parsed {
  RunOptions run;
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
  for (EngineOptions* engine :
       {&parsed.run.engine, &parsed.plan.engine, &parsed.convert.engine, &parsed.verify.engine}) {
    if (engine->model.empty()) engine->model = default_model();
  }
  if (name == "run") {
    TRY_OK(check_run(parsed.run));
    return CommandLine{std::move(parsed.run)};
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
  CLI::App& plan = *app.add_subcommand("plan", "Show the memory plan and the predicted speed");
  CLI::App& convert = *app.add_subcommand("convert", "Make the int8 pack of a model's spine");
  CLI::App& verify = *app.add_subcommand("verify", "Check a model against published numbers");
  CLI::App& version = *app.add_subcommand("version", "Show the version and what this CPU can run");
  app.require_subcommand(0, 1);

  Parser run_parser(run, parsed.problem), plan_parser(plan, parsed.problem);
  Parser convert_parser(convert, parsed.problem), version_parser(version, parsed.problem);
  Parser verify_parser(verify, parsed.problem);
  add_engine(run_parser, parsed.run.engine);
  add_run(run_parser, parsed.run);
  add_engine(plan_parser, parsed.plan.engine);
  plan_parser.value("--disk", "Read rate of the drive, e.g. 7.3GB/s, for the predicted speed",
                    [&parsed](const std::string& text) -> Status {
                      TRY(parsed.plan.disk_bytes_s, parse_rate(text));
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
    return usage("no command: give run, plan, convert, verify or version; see sluice --help");
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

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<TokenId> ids;
  while (true) {
    const size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    TRY(const TokenId id,
        parse_number<TokenId>("token id", word, 0, std::numeric_limits<TokenId>::max()));
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

Result<uint64_t> parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  const auto bytes_s = parse_size(size);
  if (!bytes_s.ok() || bytes_s.value() == 0) {
    return usage("rate \"" + std::string(text) + "\" is not a size per second such as 7.3GB/s");
  }
  return bytes_s.value();
}

}  // namespace sluice
