// What the options of one command must be together. Pure functions; thread-safe.
#pragma once

#include "app/options.h"
#include "base/error.h"

namespace sluice {

// kInvalid: one sentence of usage.
Status check_run(const RunOptions& run);
Status check_chat(const ChatOptions& chat);
Status check_serve(const ServeOptions& serve);
Status check_bench(const BenchOptions& bench);
Status check_verify(const VerifyOptions& verify);

}  // namespace sluice
