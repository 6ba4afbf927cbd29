// How far long work is, on standard error: a bar that redraws itself on a terminal, otherwise a
// plain line at every tenth. One owner: the main thread.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // leaves the cursor on a new line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `what` names the work; another `what` begins again at 0.
  void show(const std::string& what, uint64_t done_bytes, uint64_t total_bytes);
  // Ends the bar, so that other lines can be printed.
  void end_line();

 private:
  const bool terminal_;
  std::string what_;
  int64_t step_ = -1;  // the last one that was printed: a tenth, or a hundredth on a terminal
  bool open_line_ = false;
};

}  // namespace sluice
