// sluice chat: a conversation, line by line. Each answer computes only what the session does not
// know of its prompt.
#include <memory>
#include <string>
#include <utility>

#include "app/chat_commands.h"
#include "app/commands.h"
#include "app/interrupt.h"
#include "app/line_editor.h"
#include "app/output.h"
#include "app/prompt.h"
#include "app/reply_printer.h"
#include "app/stats.h"

namespace sluice {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kMorePrompt = ". ";  // after a line that goes on in the next

class Chat {
 public:
  Chat(const ChatOptions& options, Engine& engine)
      : options_(options), state_{.engine = engine, .history = {}, .last = {}} {
    state_.history.set_system(options.system);
    const std::string effort = options.no_thinking                ? "none"
                               : options.reasoning_effort.empty() ? "default"
                                                                  : options.reasoning_effort;
    CHECK(state_.history.set_effort(effort).ok());
  }

  // Until the last line. An error is one after which no chat is possible.
  Result<int> run() {
    if (editor_.interactive()) {
      TRY_OK(write_out(options_.engine.model.filename().string() +
                       ": /help lists the commands, Ctrl-D ends the chat\n"));
    }
    while (true) {
      clear_interrupt();
      TRY(const Line line, read_message());
      if (line.kind == Line::Kind::kEnd) return end();
      if (line.kind == Line::Kind::kInterrupted) {
        if (!editor_.interactive()) return kExitInterrupted;
        TRY_OK(interrupted_at_prompt(line.text.empty()));
        continue;
      }
      n_interrupts_ = 0;
      if (line.text.find_first_not_of(" \t") == std::string::npos) continue;
      editor_.remember(line.text);
      if (!is_chat_command(line.text)) {
        TRY_OK(answer(line.text));
        continue;
      }
      const auto action = run_chat_command(line.text, state_);
      if (!action.ok()) print_note(action.error().what);
      if (action.ok() && action.value() == ChatAction::kExit) return kExitDone;
    }
  }

 private:
  // Lines that end with a backslash go on.
  Result<Line> read_message() {
    TRY(Line line, editor_.read(kPrompt));
    while (line.kind == Line::Kind::kText && line.text.ends_with('\\')) {
      line.text.back() = '\n';
      TRY(const Line more, editor_.read(kMorePrompt));
      if (more.kind == Line::Kind::kInterrupted) return more;
      line.text += more.text;
      if (more.kind == Line::Kind::kEnd) break;
    }
    return line;
  }

  Status interrupted_at_prompt(bool empty) {
    n_interrupts_ = empty ? n_interrupts_ + 1 : 0;
    return write_out(n_interrupts_ >= 2 ? "\n(/exit or Ctrl-D ends the chat)\n" : "\n");
  }

  Result<int> end() {
    if (editor_.interactive()) TRY_OK(write_out("\n"));
    return kExitDone;
  }

  // Computes and shows the answer to `text`. What has come of it is kept, whatever ended it;
  // nothing is when nothing came. Errors of the answer are said here; the chat goes on.
  Status answer(const std::string& text) {
    auto prompt = render(text);
    if (!prompt.ok()) {
      print_note(prompt.error().what);
      return Ok{};
    }
    ReplyPrinter printer({.thinking = options_.show_thinking || stdout_is_terminal(),
                          .colour = stdout_has_colour()});
    clear_interrupt();
    const GenerateReply reply =
        state_.engine.generate({.tokens = {.prompt = std::move(prompt.value().ids),
                                           .max_new = options_.max_new,
                                           .sampling = options_.sampling},
                                .stop_strings = options_.stop,
                                .form = prompt.value().form},
                               &interrupt_flag(), [&](const TextDelta& delta) {
                                 printer.print(delta);
                                 if (!printer.status().ok())
                                   interrupt_flag() = true;  // nobody reads on
                               });
    printer.finish(reply);
    TRY_OK(printer.status());
    if (!reply.ids.empty()) state_.history.add_turn(text, reply);
    tell_end(reply);
    if (reply.stats.prompt_tokens == 0) return Ok{};  // refused before anything was computed
    state_.last = reply.stats;
    if (options_.stats) print_stats(reply.stats, state_.engine);
    return Ok{};
  }

  Result<Prompt> render(const std::string& text) const {
    TRY(ChatRequest request, state_.history.request(text));
    return tokenise(PromptSource(std::move(request)), state_.engine.tokenizer());
  }

  // Says on standard error why an answer is not whole.
  void tell_end(const GenerateReply& reply) {
    const int64_t context = state_.engine.plan().context_positions;
    if (reply.error) {
      const bool full = reply.error->code == Code::kBudget;
      print_note(reply.error->what + (full ? "; /reset begins a new conversation" : ""));
    } else if (reply.finish == FinishReason::kCancelled) {
      print_note(reply.ids.empty() ? "stopped before the answer began: your message is not kept"
                                   : "stopped: what is shown stays in the conversation");
    } else if (reply.finish == FinishReason::kLength) {
      const bool full = reply.stats.prompt_tokens + reply.stats.new_tokens >= context;
      print_note(full ? "the answer is cut, since the context of " + std::to_string(context) +
                            " positions is full; /reset begins a new conversation, and --context "
                            "sets more"
                      : "the answer is cut at --max-new " + std::to_string(options_.max_new));
    }
  }

  const ChatOptions& options_;
  ChatState state_;
  LineEditor editor_;
  int n_interrupts_ = 0;  // at an empty prompt, one after the other
};

}  // namespace

Result<int> chat_command(const ChatOptions& options) {
  TRY(const std::unique_ptr<Engine> engine, Engine::open(options.engine));
  print_note("spine " + engine->plan().spine() + " (" + engine->plan().spine_reason + ")");
  install_repeated_interrupt();
  return Chat(options, *engine).run();
}

}  // namespace sluice
