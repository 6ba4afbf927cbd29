// sluice chat as a person uses it: editing, colours, Ctrl-C, on a pseudo-terminal.
#include "app/cli.h"
#include "app/terminal.h"

namespace sluice {
namespace {

constexpr const char* kDim = "\033[2m";
constexpr const char* kReady = "\n> ";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kBackspace = "\x7f";

class ChatTerminal : public ::testing::Test {
 protected:
  void start(std::vector<std::string> environment = {}, std::vector<std::string> arguments = {}) {
    environment.insert(environment.begin(), {"TERM=xterm", "LC_ALL=", "LANG=", "EDITRC=/dev/null"});
    arguments.insert(arguments.begin(), {SLUICE_BINARY, "chat", "--threads", "1"});
    environment_ = std::move(environment);  // putenv borrows it
    terminal_ = std::make_unique<Terminal>(arguments, environment_);
    const std::string banner = terminal_->wait_for(kReady);
    EXPECT_NE(banner.find("/help"), std::string::npos) << banner;
  }
  std::string say(const std::string& keys, const std::string& until = kReady) {
    terminal_->type(keys);
    return terminal_->wait_for(until);
  }
  // The message that a line of keys becomes.
  std::string message_of(const std::string& keys) {
    const TempDirectory directory;
    const auto file = directory.path() / "talk.json";
    say(keys + "\r");
    say("/save " + file.string() + "\r", "sluice: saved");
    const auto text = read_text_file(file, 1 << 20);
    EXPECT_TRUE(text.ok());
    if (!text.ok()) return {};
    const Json body = parse_json(text.value(), "saved").value();
    say("/reset\r", "forgotten");
    return body["messages"][0]["content"];
  }

  std::vector<std::string> environment_;
  std::unique_ptr<Terminal> terminal_;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ChatTerminal, ThinkingIsDimmedAndTheAnswerIsNot) {
  start();
  const std::string shown = say("What is the capital of Italy?\r");
  const size_t dim = shown.find(kDim);
  const size_t plain = shown.find("\033[0m");
  ASSERT_TRUE(dim != std::string::npos && plain != std::string::npos) << shown;
  EXPECT_LT(dim, shown.find("The user asks for the capital"));
  EXPECT_LT(shown.find("The user asks for the capital"), plain);
  EXPECT_LT(plain, shown.find("The capital of Italy is Rome."));
}

TEST_F(ChatTerminal, NoColourIsUsedWhenNoneIsWanted) {
  start({"NO_COLOR=1"});
  const std::string shown = say("What is the capital of Italy?\r");
  EXPECT_FALSE(holds(shown, "\033[2m")) << shown;
  EXPECT_FALSE(holds(shown, "\033[0m")) << shown;
  EXPECT_TRUE(holds(shown, "[thinking]")) << shown;
}

TEST_F(ChatTerminal, BackspaceTakesBackWholeCharacters) {
  start({}, {"--max-new", "1"});
  const std::string back = kBackspace;
  EXPECT_EQ(message_of("caf\xC3\xA9" + back + "e"), "cafe");
  EXPECT_EQ(message_of("a\xE6\xBC\xA2" + back + "b\xE5\xAD\x97"), "ab\xE5\xAD\x97");
  EXPECT_EQ(message_of("\xE6\xBC\xA2\xF0\x9F\x99\x82" + back + back + "x"), "x");
  EXPECT_EQ(message_of("\xC3\xA9\xE6\xBC\xA2\x1b[D" + back + "e"), "e\xE6\xBC\xA2");  // left arrow
}

TEST_F(ChatTerminal, ArrowUpBringsBackALine) {
  start({}, {"--max-new", "1"});
  say("first message\r");
  EXPECT_EQ(message_of("\x1b[A again"), "first message");
}

TEST_F(ChatTerminal, CtrlCStopsTheAnswerAndTheChatGoesOn) {
  start({}, {"--logit-bias", "3842=-100", "--isa", "scalar"});
  say("Tell me a very long story.\r", "thinking]\r\nT");
  terminal_->type(kCtrlC);
  const std::string stopped = terminal_->wait_for(kReady);
  EXPECT_TRUE(holds(stopped, "sluice: stopped: what is shown stays")) << stopped;
  EXPECT_TRUE(holds(stopped, "\033[0m")) << stopped;  // not dimmed for ever
  EXPECT_TRUE(holds(say("/stats\r"), "new tokens"));
  terminal_->type(kCtrlD);
  EXPECT_EQ(terminal_->exit_status(), 0);
}

TEST_F(ChatTerminal, CtrlCAtThePromptClearsTheLine) {
  start({}, {"--max-new", "1"});
  say("not this", "not this");
  say(kCtrlC);
  EXPECT_EQ(message_of("but this"), "but this");
}

// Wherever the signal finds the editor: reading, echoing, or between the two.
TEST_F(ChatTerminal, NoCtrlCIsMissed) {
  start({}, {"--max-new", "1"});
  for (int i = 0; i < 200; ++i) {
    terminal_->type(i % 2 == 0 ? "x" : "xyz");
    ASSERT_TRUE(holds(say(kCtrlC), kReady)) << i;
  }
  EXPECT_EQ(message_of("but this"), "but this");
}

TEST_F(ChatTerminal, CtrlCTwiceAtAnEmptyPromptTellsHowToLeave) {
  start();
  EXPECT_FALSE(holds(say(kCtrlC), "/exit"));
  EXPECT_TRUE(holds(say(kCtrlC), "/exit or Ctrl-D ends the chat"));
  say("text", "text");
  EXPECT_FALSE(holds(say(kCtrlC), "/exit"));
  EXPECT_FALSE(holds(say(kCtrlC), "/exit"));
  say("/exit\r", "/exit");
  EXPECT_EQ(terminal_->exit_status(), 0);
}

}  // namespace
}  // namespace sluice
