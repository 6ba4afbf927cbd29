// sluice chat as other programs use it: lines in, answers out, commands and files.
#include <csignal>
#include <fstream>
#include <random>

#include "app/cli.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRome = "The capital of Italy is Rome.\n";
constexpr const char* kAskItaly = "What is the capital of Italy?\n";

ProcessResult chat(const std::string& lines, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), "chat");
  if (std::ranges::find(arguments, "--threads") == arguments.end()) {
    arguments.insert(arguments.end(), {"--threads", "1"});
  }
  ProcessOptions options;
  options.stdin_text = lines;
  return cli(std::move(arguments), std::move(options));
}

std::string file_text(const fs::path& path) {
  return read_text_file(path, uint64_t{64} << 20).value();
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What `run` answers to the conversation in `file` with one more message.
Json run_on(const fs::path& file, const std::string& message,
            std::vector<std::string> arguments = {}) {
  Json body = parse_json(file_text(file), "saved").value();
  body["messages"].push_back({{"role", "user"}, {"content", message}});
  ProcessOptions options;
  options.stdin_text = dump_json(body);
  arguments.insert(arguments.begin(), {"run", "--messages", "-", "--json"});
  return only_object(cli(std::move(arguments), std::move(options)));
}

TEST(Chat, AnswersLineByLineWithoutNoise) {
  const ProcessResult result = chat(std::string(kAskItaly) + "\n  \nWhat is the capital of Spain?");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, std::string(kRome) + "The capital of Spain is Madrid.\n");
  EXPECT_EQ(result.err, kSpineNote);
}

TEST(Chat, TakesTheOptionsOfRun) {
  const Json want = golden("chat_italy_nothink");
  EXPECT_EQ(
      chat(kAskItaly, {"--no-thinking"}).out,
      std::string(
          cli({"run", "--chat", "--no-thinking", "--prompt", want["messages"][0]["content"]}).out));
  const ProcessResult shown = chat(kAskItaly, {"--show-thinking", "--stats", "--max-new", "5"});
  EXPECT_TRUE(shown.out.starts_with("[thinking]\nThe user asks")) << shown.out;
  EXPECT_TRUE(holds(shown.err, "the answer is cut at --max-new 5")) << shown.err;
  EXPECT_TRUE(holds(shown.err, "5 new tokens")) << shown.err;
  EXPECT_EQ(chat("", {"--reasoning-effort", "medium"}).exit_status, 2);
  EXPECT_EQ(chat("", {"--no-thinking", "--reasoning-effort", "low"}).exit_status, 2);
  EXPECT_EQ(chat("", {"--prompt", "x"}).exit_status, 2);
  const std::vector<std::string> sampled = {"--temperature", "1", "--top-p", "0.9", "--seed", "4"};
  std::vector<std::string> run = {"run", "--chat", "--prompt", "Tell me something."};
  run.insert(run.end(), sampled.begin(), sampled.end());
  EXPECT_EQ(chat("Tell me something.\n", sampled).out, cli(run).out);
}

TEST(Chat, LaterTurnsAreThoseOfAColdRunAndComputeOnlyWhatIsNew) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  for (const std::string temperature : {"0", "1"}) {
    const std::vector<std::string> sampling = {"--temperature", temperature, "--seed", "3"};
    const ProcessResult result =
        chat(std::string(kAskItaly) + "/save " + file.string() + "\nAnd who are you?\n/stats\n",
             sampling);
    const Json cold = run_on(file, "And who are you?", sampling);
    EXPECT_TRUE(holds(result.out, "\n" + std::string(cold["text"]) + "\n")) << result.out;
    EXPECT_TRUE(holds(result.out, "prompt " + cold["stats"]["prompt_tokens"].dump() + " tokens ("))
        << result.out;
    EXPECT_TRUE(holds(result.out, " of them known)")) << result.out;
  }
}

TEST(Chat, SystemAndEffortHoldFromTheNextAnswerOn) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  const Json want = golden("chat_system_effort_low");
  const ProcessResult result =
      chat("/system " + std::string(want["messages"][0]["content"]) + "\n/effort low\n" +
           std::string(want["messages"][1]["content"]) + "\n/save " + file.string() + "\n");
  const std::string again =
      cli({"run", "--chat", "--system", want["messages"][0]["content"], "--reasoning-effort", "low",
           "--prompt", want["messages"][1]["content"]})
          .out;
  EXPECT_EQ(result.out, again);
  const Json saved = parse_json(file_text(file), "saved").value();
  EXPECT_EQ(saved["reasoning_effort"], "low");
  EXPECT_EQ(saved["messages"][0], want["messages"][0]);
  EXPECT_EQ(saved["messages"].size(), 3u);
  EXPECT_EQ(chat("/effort none\n" + std::string(kAskItaly)).out,
            chat(kAskItaly, {"--no-thinking"}).out);
  EXPECT_EQ(chat("/effort default\n" + std::string(kAskItaly), {"--no-thinking"}).out, kRome);
  EXPECT_EQ(chat("/system\n" + std::string(kAskItaly), {"--system", "Be terse."}).out, kRome);
}

TEST(Chat, ResetForgetsAllButTheSystemMessage) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  chat(std::string(kAskItaly) + "/reset\n/save " + file.string() + "\n", {"--system", "Be kind."});
  const Json saved = parse_json(file_text(file), "saved").value();
  ASSERT_EQ(saved["messages"].size(), 1u);
  EXPECT_EQ(saved["messages"][0]["content"], "Be kind.");
}

TEST(Chat, AWrongCommandIsOneLineAndTheChatGoesOn) {
  for (const std::string bad :
       {"/bogus", "/", "/effort", "/effort medium", "/reset now", "/save", "/load",
        "/load /no/such/file", "/save /no/such/directory/file", "/stats", "/help me"}) {
    const ProcessResult result = chat(bad + "\n" + kAskItaly);
    EXPECT_EQ(result.exit_status, 0) << bad;
    EXPECT_EQ(result.out, kRome) << bad;
    const std::string errors = errors_of(result);
    EXPECT_TRUE(errors.starts_with("sluice: ")) << bad << ": " << errors;
    EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << bad << ": " << errors;
  }
  EXPECT_TRUE(holds(chat("/help\n").out, "/effort low|high|max|none"));
}

TEST(Chat, EndsAtExitQuitAndTheEndOfItsInput) {
  for (const std::string end : {"/exit\n", "/quit\n", "/exit", ""}) {
    const ProcessResult result = chat(end + (end.ends_with('\n') ? kAskItaly : ""));
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(result.out, "") << end;
  }
}

TEST(Chat, ALineThatEndsWithABackslashGoesOnInTheNext) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  chat("one\\\ntwo\n /save no command\n/save " + file.string() + "\n", {"--max-new", "1"});
  const Json saved = parse_json(file_text(file), "saved").value();
  EXPECT_EQ(saved["messages"][0]["content"], "one\ntwo");
  EXPECT_EQ(saved["messages"][2]["content"], " /save no command");
}

TEST(Chat, BrokenUtf8AndCarriageReturnsAreMended) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  chat("a\xFFz \xC3\xA9\r\n/save " + file.string() + "\r\n", {"--max-new", "1"});
  EXPECT_EQ(parse_json(file_text(file), "saved").value()["messages"][0]["content"],
            "a\xEF\xBF\xBDz \xC3\xA9");
}

TEST(Chat, AFullContextSaysSoAndKeepsTheConversationUsable) {
  const std::string question = kAskItaly;
  const ProcessResult cut = chat(question + question + "/reset\n" + question, {"--context", "70"});
  EXPECT_EQ(cut.exit_status, 0);
  EXPECT_TRUE(cut.out.starts_with(kRome) && cut.out.ends_with(kRome)) << cut.out;
  EXPECT_TRUE(holds(cut.err, "leaves no room for a reply in a context of 70")) << cut.err;
  EXPECT_TRUE(holds(cut.err, "/reset begins a new conversation")) << cut.err;

  const ProcessResult middle = chat(question, {"--context", "40", "--show-thinking"});
  EXPECT_TRUE(middle.out.starts_with("[thinking]\nThe user asks")) << middle.out;
  EXPECT_TRUE(holds(middle.err, "the context of 40 positions is full")) << middle.err;
}

TEST(Chat, ASignalStopsTheAnswerAndKeepsWhatCame) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "talk.json";
  ProcessOptions options;
  options.stdin_text = "Tell me a very long story.\n/save " + file.string() + "\n";
  options.on_first_output = [](pid_t pid) { ::kill(pid, SIGINT); };
  const ProcessResult result = cli(
      {"chat", "--threads", "1", "--show-thinking", "--logit-bias", "3842=-100", "--isa", "scalar"},
      options);
  EXPECT_EQ(result.exit_status, 0) << result.err;
  const Json saved = parse_json(file_text(file), "saved").value();
  ASSERT_EQ(saved["messages"].size(), 2u) << result.err;
  const std::string thinking = saved["messages"][1]["reasoning_content"];
  EXPECT_TRUE(result.out.starts_with("[thinking]\n" + thinking)) << result.out;
}

// A conversation of one turn, saved, and what the next answer of the same process was.
class ChatFile : public ::testing::Test {
 protected:
  void save(const std::vector<std::string>& arguments = {}) {
    saved_ = chat(std::string(kAskItaly) + "/save " + file().string() + "\n" + kNext, arguments);
    ASSERT_EQ(saved_.exit_status, 0);
    ASSERT_TRUE(saved_.out.starts_with(kRome)) << saved_.out;
    next_answer_ = saved_.out.substr(std::string(kRome).size());
  }
  ProcessResult load(const std::vector<std::string>& arguments = {}) const {
    return chat("/load " + file().string() + "\n" + kNext + "/stats\n", arguments);
  }
  fs::path file() const { return directory_.path() / "talk.json"; }
  fs::path state_directory() const { return directory_.path() / "talk.json.state"; }
  fs::path state() const { return *fs::directory_iterator(state_directory()); }

  static constexpr const char* kNext = "And who are you, caf\xC3\xA9?\n";
  TempDirectory directory_;
  ProcessResult saved_;
  std::string next_answer_;
};

TEST_F(ChatFile, GoesOnInAnotherProcessWithTheSameAnswer) {
  save({"--temperature", "1", "--seed", "5", "--max-new", "60"});
  EXPECT_TRUE(holds(saved_.err, "and the state of ")) << saved_.err;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"--isa", "scalar", "--threads", "3"}, {"--ram", "24MiB", "--context", "512"}}) {
    std::vector<std::string> all = {"--temperature", "1", "--seed", "5", "--max-new", "60"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProcessResult loaded = load(all);
    EXPECT_TRUE(loaded.out.starts_with(next_answer_)) << loaded.out << loaded.err;
    EXPECT_TRUE(holds(loaded.out, " of them known)")) << loaded.out;
    EXPECT_TRUE(holds(loaded.err, "loaded 2 messages and the state of ")) << loaded.err;
  }
}

TEST_F(ChatFile, ADamagedStateCostsOnlyItsRecomputation) {
  save();
  std::string bytes = file_text(state());
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(state(), std::ios::binary) << bytes;
  const ProcessResult loaded = load();
  EXPECT_TRUE(loaded.out.starts_with(next_answer_)) << loaded.out;
  EXPECT_FALSE(holds(loaded.out, "of them known")) << loaded.out;
  EXPECT_TRUE(holds(loaded.err, state().string() + " is damaged")) << loaded.err;
  EXPECT_TRUE(holds(loaded.err, "loaded 2 messages; the first answer reads them again"));
  fs::remove(state());
  const ProcessResult without = load();
  EXPECT_TRUE(without.out.starts_with(next_answer_)) << without.out;
  EXPECT_EQ(std::ranges::count(errors_of(without), '\n'), 2) << without.err;
}

TEST_F(ChatFile, AStateThatCannotBeWrittenLeavesTheConversationSaved) {
  std::ofstream(state_directory()) << "a file in the way";
  save();
  EXPECT_TRUE(holds(saved_.err, state_directory().string())) << saved_.err;
  const ProcessResult loaded = load();
  EXPECT_TRUE(loaded.out.starts_with(next_answer_)) << loaded.out;
  EXPECT_TRUE(holds(loaded.err, "loaded 2 messages; ")) << loaded.err;
}

TEST_F(ChatFile, DamagedJsonIsAnErrorAndTheConversationStays) {
  save();
  for (const std::string bad : {"", "{", "[]", "{\"messages\": 3}", "{\"messages\": [{}]}",
                                "{\"messages\": [], \"thinking\": 1}"}) {
    std::ofstream(file()) << bad;
    const ProcessResult result = chat("/load " + file().string() + "\n" + kAskItaly);
    EXPECT_EQ(result.out, kRome) << bad;
    EXPECT_TRUE(holds(result.err, file().string())) << result.err;
    EXPECT_EQ(std::ranges::count(errors_of(result), '\n'), 1) << result.err;
  }
}

TEST_F(ChatFile, AStateNameLeadsNowhereElse) {
  save();
  Json body = parse_json(file_text(file()), "saved").value();
  for (const std::string name : {"../../etc/passwd", "x/0.state", ".state", "/0.state"}) {
    body["sluice_state"] = name;
    std::ofstream(file()) << dump_json(body);
    const ProcessResult loaded = load();
    EXPECT_TRUE(loaded.out.starts_with(next_answer_));
    EXPECT_TRUE(holds(loaded.err, "loaded 2 messages; ")) << loaded.err;
  }
}

TEST_F(ChatFile, IsTheMessagesFileOfRun) {
  save();
  const Json answer = run_on(file(), std::string(kNext).substr(0, std::string(kNext).size() - 1));
  EXPECT_EQ(std::string(answer["text"]) + "\n", next_answer_);
}

TEST_F(ChatFile, IsForItsOwnerAloneAndKeepsOneState) {
  const ProcessResult result = chat(std::string(kAskItaly) + "/save " + file().string() + "\n" +
                                    kNext + "/save " + file().string() + "\n");
  ASSERT_EQ(result.exit_status, 0);
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  for (const fs::path& path : {file(), state_directory(), state()}) {
    EXPECT_EQ(fs::status(path).permissions() & kOthers, fs::perms::none) << path;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(state_directory()), {}), 1);
  EXPECT_EQ(state().filename().string(),
            parse_json(file_text(file()), "saved").value()["sluice_state"]);
}

TEST_F(ChatFile, NothingSaidYetIsSavedToo) {
  chat("/save " + file().string() + "\n", {"--system", "Be kind."});
  const ProcessResult loaded =
      chat("/load " + file().string() + "\n/save " + file().string() + "\n");
  EXPECT_TRUE(holds(loaded.err, "loaded 1 message; ")) << loaded.err;
  EXPECT_FALSE(fs::exists(state_directory()));
  chat("/save " + file().string() + "\n");
  EXPECT_TRUE(holds(chat("/load " + file().string() + "\n").err, "loaded 0 messages"));
}

}  // namespace
}  // namespace sluice
