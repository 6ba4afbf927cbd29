// The program: parse, dispatch to one command, print an error as one line, exit with its status.
#include <csignal>
#include <utility>
#include <variant>

#include "app/commands.h"
#include "app/options.h"
#include "app/output.h"

namespace sluice {
namespace {

Result<int> dispatch(const CommandLine& line) {
  if (const auto* run = std::get_if<RunOptions>(&line.command)) return run_command(*run);
  if (const auto* chat = std::get_if<ChatOptions>(&line.command)) return chat_command(*chat);
  if (const auto* serve = std::get_if<ServeOptions>(&line.command)) return serve_command(*serve);
  if (const auto* plan = std::get_if<PlanOptions>(&line.command)) return plan_command(*plan);
  if (const auto* convert = std::get_if<ConvertOptions>(&line.command)) {
    return convert_command(*convert);
  }
  if (const auto* verify = std::get_if<VerifyOptions>(&line.command)) {
    return verify_command(*verify);
  }
  if (const auto* bench = std::get_if<BenchOptions>(&line.command)) return bench_command(*bench);
  if (const auto* version = std::get_if<VersionOptions>(&line.command)) {
    return version_command(*version);
  }
  TRY_OK(write_out(std::get<HelpText>(line.command).text));
  return kExitDone;
}

int main_status(int argc, const char* const* argv) {
  const auto line = parse_command_line(argc, argv);
  if (!line.ok()) {
    print_note(line.error().what);
    return kExitUsage;
  }
  const auto status = dispatch(line.value());
  if (!status.ok()) {
    print_note(status.error().what);
    return kExitFailed;
  }
  return status.value();
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  // A reader that goes away (| head) ends the program without a word, even if our parent ignores
  // it.
  std::signal(SIGPIPE, SIG_DFL);
  return sluice::main_status(argc, argv);
}
