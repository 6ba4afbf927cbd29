#include "app/chat_commands.h"

#include <array>
#include <string>
#include <utility>

#include "app/chat_file.h"
#include "app/output.h"
#include "app/stats.h"
#include "base/size.h"

namespace sluice {
namespace {

constexpr std::string_view kHelp =
    "/help           this list\n"
    "/reset          forget the conversation, but not the system message\n"
    "/system TEXT    set the system message; without TEXT there is none\n"
    "/effort low|high|max|none|default\n"
    "                how much to think; none: not at all; default: as the model likes\n"
    "/save FILE      write the conversation to FILE and its state to FILE.state/\n"
    "/load FILE      go on with a conversation; messages of OpenAI shape will do\n"
    "/stats          times and bytes of the last answer\n"
    "/exit, /quit    leave; so does Ctrl-D\n"
    "Ctrl-C stops an answer; what has come of it stays in the conversation, so you can go on.\n"
    "A line that ends with \\ goes on in the next one. To send a message that begins with /,\n"
    "put a space before it.\n";

std::string tokens(int64_t n) { return std::to_string(n) + (n == 1 ? " token" : " tokens"); }

// Commands that take an argument, or none, say so.
Status expect_argument(std::string_view name, std::string_view argument, bool wanted) {
  if (wanted == !argument.empty()) return Ok{};
  return Error{Code::kInvalid, std::string(name) + (wanted ? " needs a value" : " takes no value") +
                                   "; /help lists the commands"};
}

Status help(std::string_view, ChatState&) { return write_out(kHelp); }

Status reset(std::string_view, ChatState& chat) {
  chat.history.reset();
  print_note("the conversation is forgotten");
  return Ok{};
}

Status system(std::string_view text, ChatState& chat) {
  chat.history.set_system(text);
  print_note(text.empty() ? "there is no system message any more"
                          : "the system message holds from the next answer on");
  return Ok{};
}

Status effort(std::string_view effort, ChatState& chat) {
  TRY_OK(chat.history.set_effort(effort));
  print_note("the effort " + std::string(effort) + " holds from the next answer on");
  return Ok{};
}

Status save(std::string_view file, ChatState& chat) {
  TRY(const SavedChat saved, save_chat(file, chat.history, chat.engine));
  if (saved.state_error) print_note(saved.state_error->what);
  print_note("saved " + std::string(file) +
             (saved.n_state_tokens > 0 ? " and the state of " + tokens(saved.n_state_tokens) +
                                             " (" + format_size(saved.state_bytes) + " written)"
                                       : ""));
  return Ok{};
}

Status load(std::string_view file, ChatState& chat) {
  TRY(LoadedChat loaded, load_chat(file, chat.engine));
  chat.history = std::move(loaded.history);
  if (loaded.state_error) print_note(loaded.state_error->what);
  const size_t n = chat.history.size();
  print_note("loaded " + std::to_string(n) + (n == 1 ? " message" : " messages") +
             (loaded.n_state_tokens > 0 ? " and the state of " + tokens(loaded.n_state_tokens)
                                        : "; the first answer reads them again"));
  return Ok{};
}

Status stats(std::string_view, ChatState& chat) {
  if (!chat.last) return Error{Code::kInvalid, "there is no answer yet to tell of"};
  return write_out(stats_text(*chat.last, chat.engine));
}

enum class Argument { kNone, kNeeded, kOptional };

struct Command {
  std::string_view name;
  Argument argument;
  Status (*run)(std::string_view, ChatState&);
};

constexpr std::array<Command, 7> kCommands = {{{"/help", Argument::kNone, help},
                                               {"/reset", Argument::kNone, reset},
                                               {"/system", Argument::kOptional, system},
                                               {"/effort", Argument::kNeeded, effort},
                                               {"/save", Argument::kNeeded, save},
                                               {"/load", Argument::kNeeded, load},
                                               {"/stats", Argument::kNone, stats}}};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

Result<ChatAction> run_chat_command(std::string_view line, ChatState& chat) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t"));
  const std::string_view argument = trimmed(line.substr(name.size()));
  if (name == "/exit" || name == "/quit") {
    TRY_OK(expect_argument(name, argument, /*wanted=*/false));
    return ChatAction::kExit;
  }
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    if (command.argument != Argument::kOptional) {
      TRY_OK(expect_argument(name, argument, command.argument == Argument::kNeeded));
    }
    TRY_OK(command.run(argument, chat));
    return ChatAction::kGoOn;
  }
  return Error{Code::kInvalid, "there is no command " + std::string(name) +
                                   "; /help lists them, and a space before the line sends it as a "
                                   "message"};
}

}  // namespace sluice
