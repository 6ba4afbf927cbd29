#include "app/terminal.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kPatienceMs = 60'000;

}  // namespace

Terminal::Terminal(const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment) {
  int fd = -1;
  winsize size = {.ws_row = 24, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = ::forkpty(&fd, nullptr, nullptr, &size);
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  fd_ = UniqueFd(fd);
}

Terminal::~Terminal() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Terminal::type(std::string_view keys) {
  CHECK(::write(fd_.get(), keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

bool Terminal::read_some() {
  pollfd input = {fd_.get(), POLLIN, 0};
  if (::poll(&input, 1, kPatienceMs) <= 0) return false;
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(fd_.get(), buffer.data(), buffer.size());  // EIO when the program ended
  if (n <= 0) return false;
  seen_.append(buffer.data(), static_cast<size_t>(n));
  return true;
}

std::string Terminal::wait_for(std::string_view text) {
  while (seen_.find(text) == std::string::npos) {
    if (!read_some()) return std::exchange(seen_, {});
  }
  return std::exchange(seen_, {});
}

int Terminal::exit_status() {
  while (read_some()) continue;
  int status = 0;
  for (int waited_ms = 0; waited_ms < kPatienceMs; waited_ms += 10) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return -1;
}

}  // namespace sluice
