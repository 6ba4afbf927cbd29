// Lines that a person types, with editing and history, or that another program sends. The one
// wrapper of libedit. One owner: the main thread.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

namespace sluice {

struct Line {
  enum class Kind { kText, kEnd, kInterrupted };
  Kind kind = Kind::kText;
  std::string text =
      {};  // kText: UTF-8 without the line's end; kInterrupted: what was typed so far
};

class LineEditor {
 public:
  // Edits lines when standard input and output are both terminals; otherwise it only reads them.
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  bool interactive() const;
  // The next line; `prompt` is shown only to a person and outlives the call. kInterrupted when
  // interrupt_flag() is set by a signal meanwhile, which stays set. kIo, kInvalid for a line of
  // more than 64 MiB.
  Result<Line> read(const char* prompt);
  // Makes a line one that the arrow keys bring back.
  void remember(const std::string& line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
