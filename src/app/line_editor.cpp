#include "app/line_editor.h"

#include <histedit.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <string_view>
#include <system_error>

#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include "app/interrupt.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr int kHistoryLines = 1000;
constexpr size_t kLineBytesMax = 64 << 20;  // as a prompt from a file

// Only the kind of characters: numbers are printed alike everywhere.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// The text that was typed, as UTF-8 whatever came in.
std::string clean(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::string utf8;
  append_utf8_lossy(text, utf8);
  return utf8;
}

}  // namespace

struct LineEditor::Impl {
  EditLine* edit = nullptr;  // null: standard input is only read
  History* history = nullptr;
  const char* prompt = "";
  std::string pending;  // read from a pipe, not yet given out
  bool at_end = false;

  // Waits for input; false: Ctrl-C came first. A signal that ends the wait for another reason
  // (a resize, a return from suspension) has been served by its handler.
  static bool wait_for_input() {
    std::array<pollfd, 2> both = {pollfd{STDIN_FILENO, POLLIN, 0},
                                  pollfd{interrupt_descriptor(), POLLIN, 0}};
    while (!interrupt_flag()) {
      if (::poll(both.data(), both.size(), -1) > 0 && both[0].revents != 0) break;
    }
    return !interrupt_flag();
  }

  // libedit's own reader would miss a Ctrl-C that comes while it is not reading.
  static int next_character(EditLine*, wchar_t* character) {
    std::mbstate_t partial = {};
    char byte = 0;
    while (wait_for_input()) {
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return static_cast<int>(n);
      const size_t length = std::mbrtowc(character, &byte, 1, &partial);
      if (length == static_cast<size_t>(-2)) continue;  // more bytes to come
      if (length != static_cast<size_t>(-1)) return 1;
      partial = {};  // no character: skipped
    }
    return -1;
  }

  static char* show_prompt(EditLine* edit) {
    Impl* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return const_cast<char*>(self->prompt);
  }

  void begin_editing() {
    use_utf8();
    edit = el_init("sluice", stdin, stdout, stderr);
    history = history_init();
    CHECK(edit != nullptr && history != nullptr);
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistoryLines);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(edit, EL_CLIENTDATA, this);
    el_set(edit, EL_PROMPT, &show_prompt);
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_HIST, ::history, history);
    el_set(edit, EL_GETCFN, &next_character);
    el_set(edit, EL_SIGNAL, 1);  // resizing, suspending; SIGINT goes on to our handler
    el_source(edit, nullptr);    // the user's ~/.editrc
  }

  Line edited() {
    int bytes = 0;
    const char* text = el_gets(edit, &bytes);
    if (text != nullptr && bytes > 0) {
      return {.kind = Line::Kind::kText, .text = clean({text, static_cast<size_t>(bytes)})};
    }
    if (!interrupt_flag()) return {.kind = Line::Kind::kEnd};
    const LineInfo* typed = el_line(edit);
    return {.kind = Line::Kind::kInterrupted, .text = std::string(typed->buffer, typed->lastchar)};
  }

  // Takes the next line out of `pending` when it is there, or all that is left at the end.
  bool take_line(std::string& line) {
    const size_t end = pending.find('\n');
    if (end == std::string::npos && !(at_end && !pending.empty())) return false;
    line = clean(std::string_view(pending).substr(0, end));
    pending.erase(0, end == std::string::npos ? end : end + 1);
    return true;
  }

  Result<Line> piped() {
    Line line;
    while (!take_line(line.text)) {
      if (at_end) return Line{.kind = Line::Kind::kEnd};
      if (pending.size() > kLineBytesMax) {
        return Error{Code::kInvalid, "a line of standard input is longer than 64 MiB"};
      }
      if (!wait_for_input()) return Line{.kind = Line::Kind::kInterrupted};
      std::array<char, 65536> buffer;
      const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return Error{Code::kIo,
                     "standard input cannot be read: " + std::generic_category().message(errno)};
      }
      at_end = n == 0;
      pending.append(buffer.data(), static_cast<size_t>(n));
    }
    return line;
  }

  ~Impl() {
    if (history != nullptr) history_end(history);
    if (edit != nullptr) el_end(edit);
  }
};

LineEditor::LineEditor() : impl_(std::make_unique<Impl>()) {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) impl_->begin_editing();
}

LineEditor::~LineEditor() = default;

bool LineEditor::interactive() const { return impl_->edit != nullptr; }

Result<Line> LineEditor::read(const char* prompt) {
  if (!interactive()) return impl_->piped();
  impl_->prompt = prompt;
  return impl_->edited();
}

void LineEditor::remember(const std::string& line) {
  if (!interactive()) return;
  HistEvent event;
  ::history(impl_->history, &event, H_ENTER, line.c_str());
}

}  // namespace sluice
