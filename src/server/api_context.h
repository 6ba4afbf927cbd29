// What the endpoints work with once the model is there. Borrowed; immutable.
#pragma once

#include <functional>
#include <string>

#include "engine/loaded_model.h"
#include "engine/scheduler.h"

namespace sluice {

struct ApiContext {
  LoadedModel& loaded;  // only what may be read from any thread
  Scheduler& scheduler;
  std::string model;               // its name for clients
  std::string system_fingerprint;  // of what decides a reply: checkpoint, spine, kernel family
  int64_t created_s = 0;           // Unix time at which the model was opened
  // One line for each request that ended; may be empty. Thread-safe.
  std::function<void(const std::string&)> log;
};

}  // namespace sluice
