#include "app/reply_printer.h"

#include <string>

#include "app/output.h"

namespace sluice {
namespace {

constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kPlain = "\033[0m";

}  // namespace

void ReplyPrinter::print(const TextDelta& delta) {
  if (options_.thinking && !delta.reasoning.empty()) {
    if (!thinking_) write((options_.colour ? std::string(kDim) : std::string()) + "[thinking]\n");
    thinking_ = true;
    write(delta.reasoning);
  }
  if (delta.text.empty()) return;
  end_thinking();
  write(delta.text);
}

void ReplyPrinter::finish(const GenerateReply& reply) {
  end_thinking();
  for (const ReplyCall& call : reply.tool_calls) {
    if (!at_line_start_) write("\n");
    write("[call " + call.name + " " + call.arguments + "]\n");
  }
  if (!at_line_start_) write("\n");
}

void ReplyPrinter::end_thinking() {
  if (!thinking_) return;
  thinking_ = false;
  if (!at_line_start_) write("\n");
  write("[/thinking]" + (options_.colour ? std::string(kPlain) : std::string()) + "\n");
}

void ReplyPrinter::write(std::string_view text) {
  if (!status_.ok() || text.empty()) return;
  status_ = write_out(text);
  at_line_start_ = text.ends_with('\n');
}

}  // namespace sluice
