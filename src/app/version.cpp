// sluice version: what this binary is and which kernel tables this CPU runs.
#include <string>

#include "app/commands.h"
#include "app/output.h"
#include "base/json.h"
#include "kernels/dispatch.h"

namespace sluice {
namespace {

// Set by CMake; the commit is that of configure time, or "unknown" outside a repository.
constexpr const char* kVersion = SLUICE_VERSION;
constexpr const char* kCommit = SLUICE_COMMIT;
constexpr const char* kCompiler = SLUICE_COMPILER;

}  // namespace

Result<int> version_command(const VersionOptions& options) {
  TRY(const KernelTable* const fastest, choose_table("auto"));
  Json tables = Json::array();
  std::string names;
  for (const KernelTable* table : supported_tables()) {
    tables.push_back(table->name);
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  if (options.json) {
    const Json object = {{"version", kVersion},
                         {"commit", kCommit},
                         {"compiler", kCompiler},
                         {"tables", tables},
                         {"default_table", fastest->name}};
    TRY_OK(write_out(dump_json(object) + "\n"));
    return kExitDone;
  }
  TRY_OK(write_out("sluice " + std::string(kVersion) + " (commit " + kCommit + ", " + kCompiler +
                   ")\nkernel tables on this CPU: " + names + "; --isa auto takes " +
                   fastest->name + "\n"));
  return kExitDone;
}

}  // namespace sluice
