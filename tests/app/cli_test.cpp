// The command line as scripts use it: what run, plan and version print and how they exit.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "app/cli.h"
#include "format/safetensors.h"

namespace sluice {
namespace {

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string joined(const Json& ids) {
  std::string text;
  for (const Json& id : ids) text += (text.empty() ? "" : ",") + id.dump();
  return text;
}

TEST(Run, PrintsTheGoldenText) {
  const Json want = golden("raw_france");
  const ProcessResult result = cli({"run", "--prompt", want["text"], "--max-new", "32"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, std::string(want["bf16"]["text"]) + "\n");
  EXPECT_EQ(result.err, kSpineNote);
}

TEST(Run, JsonIsOneObjectWithItsFields) {
  const Json want = golden("raw_unicode");
  const std::string max_new = std::to_string(want["bf16"]["greedy"].size());
  const Json got =
      only_object(cli({"run", "--prompt", want["text"], "--max-new", max_new, "--json"}));
  EXPECT_EQ(got["prompt_ids"], want["ids"]);
  EXPECT_EQ(got["ids"], want["bf16"]["greedy"]);
  EXPECT_EQ(got["text"], want["bf16"]["text"]);
  EXPECT_EQ(got["reasoning"], "");
  EXPECT_EQ(got["finish_reason"], "length");
  EXPECT_FALSE(got.contains("tool_calls"));
  for (const char* field :
       {"prefill_s", "ttft_s", "decode_tok_s", "bytes_read", "expert_hits", "expert_misses",
        "spine", "ram", "isa", "read_gb_s", "draft_proposed", "draft_accepted"}) {
    EXPECT_TRUE(got["stats"].contains(field)) << field;
  }
  EXPECT_EQ(got["stats"]["spine"], "bf16");
}

TEST(Run, IdsGiveTheGoldenIdsAndTheFinalStopId) {
  const Json want = golden("chat_json");
  const Json got = only_object(cli({"run", "--ids", joined(want["ids"]), "--json"}));
  EXPECT_EQ(got["ids"], want["bf16"]["greedy"]);
  EXPECT_EQ(got["text"], want["bf16"]["text"]);
  EXPECT_EQ(got["finish_reason"], "stop");
}

TEST(Run, ChatWrapsThePromptAndSeparatesTheThinking) {
  const Json want = golden("chat_italy");
  const Json got =
      only_object(cli({"run", "--chat", "--prompt", want["messages"][0]["content"], "--json"}));
  EXPECT_EQ(got["prompt_ids"], want["ids"]);
  EXPECT_EQ(got["ids"], want["bf16"]["greedy"]);
  EXPECT_EQ(got["text"], "The capital of Italy is Rome.");
  EXPECT_EQ(got["reasoning"], "The user asks for the capital of Italy. It is Rome.");

  const Json plain = golden("chat_italy_nothink");
  const Json answer = only_object(cli(
      {"run", "--chat", "--no-thinking", "--prompt", plain["messages"][0]["content"], "--json"}));
  EXPECT_EQ(answer["prompt_ids"], plain["ids"]);
  EXPECT_EQ(answer["reasoning"], "");
}

TEST(Run, AChatsThinkingIsShownOnlyWhenAskedForWithoutATerminal) {
  const std::vector<std::string> arguments = {"run", "--chat", "--prompt",
                                              "What is the capital of Italy?"};
  EXPECT_EQ(cli(arguments).out, "The capital of Italy is Rome.\n");
  std::vector<std::string> shown = arguments;
  shown.push_back("--show-thinking");
  EXPECT_EQ(cli(shown).out,
            "[thinking]\nThe user asks for the capital of Italy. It is Rome.\n[/thinking]\n"
            "The capital of Italy is Rome.\n");
}

TEST(Run, MessagesRenderTheGoldenPromptsAndToolCallsComeBack) {
  const TempDirectory directory;
  const auto file = directory.path() / "messages.json";
  const Json want = golden("chat_weather_call");
  const Json body = {{"messages", want["messages"]}, {"tools", want["options"]["tools"]}};
  write_text(file, body.dump());
  const Json got = only_object(cli({"run", "--messages", file, "--json"}));
  EXPECT_EQ(got["prompt_ids"], want["ids"]);
  EXPECT_EQ(got["ids"], want["bf16"]["greedy"]);
  EXPECT_EQ(got["finish_reason"], "tool_calls");
  ASSERT_EQ(got["tool_calls"].size(), 1u);
  EXPECT_EQ(got["tool_calls"][0]["function"]["name"], "get_weather");
  const Json arguments =
      parse_json(std::string(got["tool_calls"][0]["function"]["arguments"]), "arguments").value();
  EXPECT_EQ(arguments["city"], "Paris");

  ProcessOptions from_stdin;
  from_stdin.stdin_text = body.dump();
  const ProcessResult text = cli({"run", "--messages", "-"}, from_stdin);
  EXPECT_TRUE(text.out.starts_with("[call get_weather {")) << text.out;
}

TEST(Run, TheEffortAndTheSystemMessageReachThePrompt) {
  const Json want = golden("chat_system_effort_low");
  ASSERT_EQ(want["messages"].size(), 2u);
  const Json got =
      only_object(cli({"run", "--chat", "--system", want["messages"][0]["content"], "--prompt",
                       want["messages"][1]["content"], "--reasoning-effort", "low", "--json"}));
  EXPECT_EQ(got["prompt_ids"], want["ids"]);
  EXPECT_EQ(got["ids"], want["bf16"]["greedy"]);
}

TEST(Run, PromptsComeFromFilesAndStandardInput) {
  const TempDirectory directory;
  const auto file = directory.path() / "prompt.txt";
  write_text(file, "The capital of France is");
  const std::string want = " Paris.\n";
  EXPECT_EQ(cli({"run", "--prompt-file", file, "--max-new", "2"}).out, want);
  ProcessOptions from_stdin;
  from_stdin.stdin_text = "The capital of France is";
  EXPECT_EQ(cli({"run", "--prompt-file", "-", "--max-new", "2"}, from_stdin).out, want);
}

TEST(Run, SamplingOptionsReachTheSampler) {
  const auto ids = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run",       "--prompt", "The capital of France is",
                                          "--max-new", "12",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return only_object(cli(arguments))["ids"];
  };
  const Json greedy = ids({});
  EXPECT_EQ(ids({"--temperature", "5", "--top-k", "1"}), greedy);
  EXPECT_EQ(ids({"--temperature", "5", "--top-p", "0.0001"}), greedy);
  EXPECT_EQ(ids({"--temperature", "5", "--min-p", "1"}), greedy);
  const Json hot = ids({"--temperature", "5", "--seed", "7"});
  EXPECT_NE(hot, greedy);
  EXPECT_EQ(ids({"--temperature", "5", "--seed", "7", "--threads", "2", "--isa", "scalar"}), hot);
  EXPECT_NE(ids({"--temperature", "5", "--seed", "8"}), hot);
  EXPECT_EQ(ids({"--logit-bias", "99=1000"})[0], 99);
  for (const char* penalty :
       {"--repetition-penalty", "--presence-penalty", "--frequency-penalty"}) {
    EXPECT_NE(ids({penalty, "50"}), greedy) << penalty;
  }
}

TEST(Run, StopTextsEndTheReplyWhateverTheyLookLike) {
  const ProcessResult result =
      cli({"run", "--prompt", "The capital of France is", "--stop", "[a,b]", "--stop", " Tower"});
  EXPECT_EQ(result.out, " Paris. The Eiffel\n");
}

TEST(Run, StatsGoToStandardError) {
  const ProcessResult result =
      cli({"run", "--prompt", "The capital of France is", "--max-new", "2", "--stats"});
  EXPECT_EQ(result.out, " Paris.\n");
  EXPECT_NE(result.err.find("prompt 5 tokens"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("spine bf16"), std::string::npos);
}

TEST(Run, DumpWritesTheTensorsOfThePromptWhole) {
  const TempDirectory directory;
  const auto path = directory.path() / "dump.safetensors";
  const Json want = golden("raw_planet");
  const ProcessResult result =
      cli({"run", "--ids", joined(want["ids"]), "--max-new", "1", "--dump", path.string()});
  ASSERT_EQ(result.exit_status, 0) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
  std::vector<std::string> names;
  const FilePtr file = File::open(path, Direct::kOff).value();
  const auto visit = [&](std::string_view name, const TensorInfo&) -> Status {
    names.emplace_back(name);
    return Ok{};
  };
  ASSERT_TRUE(read_safetensors_header(*file, visit).ok());
  for (const char* name :
       {"hidden", "attn_out", "router_ids", "router_weights", "logits", "attnres.8.mlp",
        "attnres.output", "kda_state.0", "conv_state.5.k", "mla_cache.3"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
}

TEST(Run, TheFirstInterruptEndsTheReplyWithWhatWasMade) {
  ProcessOptions interrupt;
  interrupt.on_first_output = [](pid_t pid) { ::kill(pid, SIGINT); };
  const ProcessResult result =
      cli({"run", "--prompt", "The capital of France is", "--max-new", "100000"}, interrupt);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_status, 130);
  EXPECT_TRUE(result.out.starts_with(" Paris")) << result.out;
  EXPECT_TRUE(result.out.ends_with("\n"));
}

TEST(Run, AnInterruptedJsonReplyIsOneCancelledObject) {
  const TempDirectory directory;
  const auto dump = directory.path() / "dump";
  ProcessOptions interrupt;
  // The dump appears when generation is about to begin.
  interrupt.on_started = [&](pid_t pid) {
    for (int i = 0; i < 3000 && !std::filesystem::exists(dump); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(pid, SIGINT);
  };
  const ProcessResult result = cli({"run", "--prompt", "The capital of France is", "--max-new",
                                    "100000", "--json", "--dump", dump.string()},
                                   interrupt);
  EXPECT_EQ(result.exit_status, 130);
  const auto json = parse_json(result.out, "standard output");
  ASSERT_TRUE(json.ok()) << result.out;
  EXPECT_EQ(json.value()["finish_reason"], "cancelled");
}

TEST(Run, AReaderThatGoesAwayEndsItWithoutAWord) {
  const ProcessResult result =
      run_process({"/bin/sh", "-c",
                   std::string("( ") + SLUICE_BINARY +
                       " run --prompt Hello --max-new 400; echo $? >&2 ) | head -c 1"});
  EXPECT_EQ(result.err, std::string(kSpineNote) + "141\n");  // 128 + SIGPIPE
}

TEST(Plan, NamesTheFloorAndPredictsFromTheDrivesRate) {
  const Json roomy = only_object(cli({"plan", "--json", "--ram", "1GiB"}));
  EXPECT_EQ(roomy["layers_pinned"], roomy["layers"]);
  EXPECT_EQ(roomy["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_FALSE(roomy.contains("predicted"));
  const std::string floor = roomy["floor"].dump();
  const Json tight =
      only_object(cli({"plan", "--json", "--ram", floor, "--disk", "1MB/s", "--context", "4096"}));
  EXPECT_EQ(tight["layers_pinned"], 0);
  const Json& cold = tight["predicted"]["decode_cold"];
  EXPECT_NEAR(cold["drive_s"].get<double>(), tight["bytes_per_token_no_hits"].get<double>() / 1e6, 0.5);
  EXPECT_EQ(cold["binds"], "the drive");

  const ProcessResult text = cli({"plan", "--ram", floor, "--disk", "7.3GB/s"});
  EXPECT_EQ(text.exit_status, 0);
  EXPECT_NE(text.out.find("predicted"), std::string::npos);
  EXPECT_NE(text.out.find("0 of 9 layers"), std::string::npos) << text.out;
  EXPECT_NE(cli({"plan"}).out.find("give --disk"), std::string::npos);
}

TEST(Version, TellsWhatThisCpuRuns) {
  const Json version = only_object(cli({"version", "--json"}));
  EXPECT_EQ(version["tables"][0], "scalar");
  EXPECT_FALSE(version["version"].get<std::string>().empty());
  EXPECT_TRUE(version.contains("commit") && version.contains("compiler"));
  EXPECT_TRUE(cli({"version"}).out.starts_with("sluice "));
  EXPECT_EQ(cli({"--version"}).out, cli({"version"}).out);
}

TEST(Help, IsPrintedForEveryCommand) {
  EXPECT_NE(cli({"--help"}).out.find("run"), std::string::npos);
  const ProcessResult run = cli({"run", "--help"});
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_NE(run.out.find("--max-new"), std::string::npos);
  EXPECT_NE(cli({"plan", "--help"}).out.find("--disk"), std::string::npos);
}

}  // namespace
}  // namespace sluice
