// Runs a program on a pseudo-terminal and talks with it as a person would. One owner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "io/file.h"

namespace sluice {

class Terminal {
 public:
  // `environment` entries are "NAME=value", added to this process's.
  Terminal(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
  ~Terminal();  // kills what still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys);
  // Reads until what came since the last wait holds `text`, and returns all of that. Everything
  // that came when the program ends or a minute passes first.
  std::string wait_for(std::string_view text);
  // The exit status; -1 when a signal ended it or it does not end within a minute.
  int exit_status();

 private:
  bool read_some();

  pid_t pid_ = -1;
  UniqueFd fd_;
  std::string seen_;
};

}  // namespace sluice
