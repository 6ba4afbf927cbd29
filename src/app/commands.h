// The commands, one file each. Each prints its result on standard output and returns the exit
// status of a run that went as asked (0, or 130 after Ctrl-C); an error is for main to print (exit
// status 1).
#pragma once

#include "app/options.h"
#include "base/error.h"

namespace sluice {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

Result<int> run_command(const RunOptions& options);
Result<int> chat_command(const ChatOptions& options);
Result<int> serve_command(const ServeOptions& options);
Result<int> plan_command(const PlanOptions& options);
Result<int> convert_command(const ConvertOptions& options);
Result<int> verify_command(const VerifyOptions& options);
Result<int> bench_command(const BenchOptions& options);
Result<int> version_command(const VersionOptions& options);

}  // namespace sluice
