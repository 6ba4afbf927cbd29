#include "app/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace sluice {

Status write_out(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return Ok{};
  return Error{Code::kIo,
               "cannot write to standard output: " + std::generic_category().message(errno) +
                   "; what was printed is incomplete"};
}

void print_note(std::string_view text) {
  std::string line = "sluice: " + std::string(text);
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sluice
