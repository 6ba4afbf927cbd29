// sluice serve: the model behind an HTTP API until SIGTERM or Ctrl-C; then what runs may finish.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/resource.h>

#include "app/commands.h"
#include "app/output.h"
#include "base/size.h"
#include "engine/loaded_model.h"
#include "engine/scheduler.h"
#include "io/file.h"
#include "server/http_server.h"
#include "server/service.h"

namespace sluice {
namespace {

constexpr uint64_t kKeyFileBytesMax = 1 << 20;
// Prompt rows of a pass whose logits may be wanted (echo with logprobs): 42 MB on K3.
constexpr int64_t kScoreRows = 64;

// SIGTERM and SIGINT as values instead of handlers. Made before any thread, which inherit the mask.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  // Whether one came within the time.
  bool wait(double seconds) const {
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    return sigtimedwait(&set_, nullptr, &time) > 0;
  }

 private:
  sigset_t set_;
};

// Ends the program when a signal comes before the model is open: there is nothing to finish.
class OpeningWatch {
 public:
  explicit OpeningWatch(const Signals& signals)
      : thread_([this, &signals] {
          while (!opened_) {
            if (signals.wait(0.1)) std::_Exit(kExitInterrupted);
          }
        }) {}
  ~OpeningWatch() {
    opened_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> opened_{false};
  std::thread thread_;
};

// A connection takes a descriptor: as many as the system lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));  // the old limit serves too
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The keys of the command line and those of the key file, one a line.
Result<std::vector<std::string>> api_keys(const ServeOptions& options) {
  std::vector<std::string> keys = options.api_keys;
  if (options.api_key_file.empty()) return keys;
  TRY(std::string text, read_text_file(options.api_key_file, kKeyFileBytesMax));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (std::string key = trimmed(text.substr(begin, end - begin)); !key.empty()) {
      keys.push_back(std::move(key));
    }
    begin = end + 1;
  }
  if (keys.empty()) {
    return Error{Code::kInvalid,
                 "--api-key-file " + options.api_key_file + " holds no key; write one key a line"};
  }
  return keys;
}

std::string model_name(const ServeOptions& options) {
  if (!options.model_name.empty()) return options.model_name;
  std::error_code ignored;
  const auto path = std::filesystem::canonical(options.engine.model, ignored);
  return path.filename().empty() ? "model" : path.filename().string();
}

std::string fingerprint_word(const LoadedModel& loaded) {
  constexpr size_t kDigits = 16;
  return "sluice-" + loaded.checkpoint().identity().substr(0, kDigits) +
         (loaded.plan().pack ? "-int8" : "-bf16") + "-" + loaded.plan().table->family;
}

Result<std::unique_ptr<LoadedModel>> open_model(EngineOptions engine, const Signals& signals) {
  const OpeningWatch watch(signals);
  engine.score_rows = kScoreRows;
  return LoadedModel::open(engine);
}

void note_ready(const LoadedModel& loaded, const HttpServer& server, const ServeOptions& options) {
  const EnginePlan& plan = loaded.plan();
  print_note("spine " + plan.spine() + " (" + plan.spine_reason + "); " +
             std::to_string(plan.n_sequences) + " requests at once, context " +
             std::to_string(plan.context_positions) + " of " + std::to_string(plan.pool_positions) +
             " positions in all, " + format_size(plan.memory.total_bytes()) + " of memory");
  print_note("ready on http://" + options.host + ":" + std::to_string(server.port()) + "/v1");
}

// Waits for a signal, then for what runs, unless a second signal or --drain-timeout comes first.
void serve_until_signalled(const Signals& signals, Service& service, Scheduler& scheduler,
                           const ServeOptions& options) {
  constexpr double kLookS = 0.2;
  while (!signals.wait(3600.0)) {
  }
  print_note("shutting down: finishing what runs; a second signal ends it at once");
  service.set_draining();
  scheduler.drain();
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.drain_timeout_s);
  while (!scheduler.wait_idle(kLookS)) {
    if (std::chrono::steady_clock::now() >= deadline || signals.wait(0.0)) return;
  }
  // The last bytes of the last reply are still on their way to its client.
  std::this_thread::sleep_for(std::chrono::duration<double>(kLookS));
}

}  // namespace

Result<int> serve_command(const ServeOptions& options) {
  const Signals signals;
  raise_descriptor_limit();
  std::function<void(const std::string&)> log;
  if (!options.quiet) log = [](const std::string& line) { print_note(line); };
  std::atomic<const HttpServer*> listening{nullptr};
  TRY(auto keys, api_keys(options));
  Service service({.api_keys = std::move(keys),
                   .local_only = !options.no_auth,
                   .cors_origin = options.cors_origin,
                   .log = log,
                   .log_bodies = options.log_prompts,
                   .n_connections = [&listening]() -> int64_t {
                     const HttpServer* server = listening;
                     return server ? server->n_connections() : 0;
                   }});
  // Listening comes first, so that /health can say that the model is being opened.
  TRY(const auto server,
      HttpServer::start(
          {.host = options.host, .port = options.port, .connections_max = options.max_connections},
          service));
  listening = server.get();
  TRY(const auto loaded, open_model(options.engine, signals));
  Scheduler scheduler(*loaded, {.queue_max = options.queue, .pass_s_max = options.pass_s_max});
  const ApiContext context{.loaded = *loaded,
                           .scheduler = scheduler,
                           .model = model_name(options),
                           .system_fingerprint = fingerprint_word(*loaded),
                           .created_s = static_cast<int64_t>(std::time(nullptr)),
                           .log = log};
  service.set_ready(context);
  note_ready(*loaded, *server, options);
  serve_until_signalled(signals, service, scheduler, options);
  server->stop();  // replies go, and with them what is left of their requests
  return kExitDone;
}

}  // namespace sluice
