// Shows a reply on standard output as it comes: thinking between markers (dim where there are
// colours), then the text, then tool calls. One owner: the main thread.
#pragma once

#include <string_view>

#include "base/error.h"
#include "engine/engine.h"

namespace sluice {

struct PrinterOptions {
  bool thinking = false;  // show it
  bool colour = false;
};

class ReplyPrinter {
 public:
  explicit ReplyPrinter(PrinterOptions options) : options_(options) {}

  void print(const TextDelta& delta);
  // Ends the last line.
  void finish(const GenerateReply& reply);
  // The first error of a write; nothing is written after it.
  const Status& status() const { return status_; }

 private:
  void end_thinking();
  void write(std::string_view text);

  PrinterOptions options_;
  Status status_ = Ok{};
  bool thinking_ = false;  // between the markers
  bool at_line_start_ = true;
};

}  // namespace sluice
