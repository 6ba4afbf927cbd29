// Runs a program and collects what it printed, for tests of the command line. One owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sluice {

struct ProcessResult {
  int exit_status = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::string stdin_text = {};
  std::string stdout_path = {};  // write standard output there instead of collecting it
  // Called with the process id as soon as the program runs.
  std::function<void(pid_t)> on_started = {};
  // Called once with the process id when standard output holds its first bytes.
  std::function<void(pid_t)> on_first_output = {};
};

ProcessResult run_process(const std::vector<std::string>& arguments, ProcessOptions options = {});

}  // namespace sluice
