#include "app/process.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "io/file.h"

namespace sluice {
namespace {

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    int fds[2];
    CHECK(::pipe2(fds, O_CLOEXEC) == 0);
    read = UniqueFd(fds[0]);
    write = UniqueFd(fds[1]);
  }
};

[[noreturn]] void become(const std::vector<std::string>& arguments, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

// Appends what can be read; false at the end of the stream.
bool append(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR;
  text.append(buffer.data(), static_cast<size_t>(n));
  return n > 0;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, ProcessOptions options) {
  ProcessResult result;
  Pipe in, out, err;
  UniqueFd file;
  if (!options.stdout_path.empty()) {
    file = UniqueFd(::open(options.stdout_path.c_str(), O_WRONLY | O_CLOEXEC));
    CHECK(file.get() >= 0);
  }
  const int out_fd = file.get() >= 0 ? file.get() : out.write.get();
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid == 0) become(arguments, in.read.get(), out_fd, err.write.get());
  out.write = UniqueFd();
  err.write = UniqueFd();
  // Test input is far below a pipe's 64 KiB, so this cannot block.
  CHECK(::write(in.write.get(), options.stdin_text.data(), options.stdin_text.size()) ==
        static_cast<ssize_t>(options.stdin_text.size()));
  in.write = UniqueFd();
  if (options.on_started) options.on_started(pid);

  std::array<pollfd, 2> polls = {{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    if (::poll(polls.data(), polls.size(), -1) < 0) continue;
    if (polls[0].revents && !append(polls[0].fd, result.out)) polls[0].fd = -1;
    if (polls[1].revents && !append(polls[1].fd, result.err)) polls[1].fd = -1;
    if (!result.out.empty() && options.on_first_output) {
      options.on_first_output(pid);
      options.on_first_output = nullptr;
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace sluice
