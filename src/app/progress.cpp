#include "app/progress.h"

#include <cstdio>

#include "app/options.h"
#include "base/size.h"

namespace sluice {
namespace {

constexpr int64_t kBarWidth = 30;

}  // namespace

ProgressLine::ProgressLine() : terminal_(stderr_is_terminal()) {}

ProgressLine::~ProgressLine() { end_line(); }

void ProgressLine::show(const std::string& what, uint64_t done_bytes, uint64_t total_bytes) {
  const uint64_t steps = terminal_ ? 100 : 10;
  const auto step =
      static_cast<int64_t>(total_bytes == 0 ? steps : done_bytes * steps / total_bytes);
  if (what == what_ && step == step_) return;
  if (what != what_) end_line();
  what_ = what;
  step_ = step;
  const std::string sizes = format_size(done_bytes) + " of " + format_size(total_bytes);
  if (!terminal_) {
    std::fprintf(stderr, "%s: %lld %%, %s\n", what.c_str(), static_cast<long long>(step * 10),
                 sizes.c_str());
    return;
  }
  const auto filled = static_cast<size_t>(step * kBarWidth / 100);
  std::string bar(filled, '#');
  bar.resize(static_cast<size_t>(kBarWidth), '.');
  std::fprintf(stderr, "\r%s [%s] %3lld %%, %s   ", what.c_str(), bar.c_str(),
               static_cast<long long>(step), sizes.c_str());
  open_line_ = true;
}

void ProgressLine::end_line() {
  if (open_line_) std::fputc('\n', stderr);
  open_line_ = false;
}

}  // namespace sluice
