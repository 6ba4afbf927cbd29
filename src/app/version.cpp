// sluice version: what this binary is and which kernel tables this CPU runs.
#include <string>

#include "app/build_info.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/json.h"
#include "kernels/dispatch.h"

namespace sluice {

Result<int> version_command(const VersionOptions& options) {
  TRY(const KernelTable* const fastest, choose_table("auto"));
  Json tables = Json::array();
  std::string names;
  for (const KernelTable* table : supported_tables()) {
    tables.push_back(table->name);
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  if (options.json) {
    const Json object = {{"version", build_info().version},
                         {"commit", build_info().commit},
                         {"compiler", build_info().compiler},
                         {"tables", tables},
                         {"default_table", fastest->name}};
    TRY_OK(write_out(dump_json(object) + "\n"));
    return kExitDone;
  }
  TRY_OK(write_out("sluice " + std::string(build_info().version) + " (commit " + build_info().commit + ", " + build_info().compiler +
                   ")\nkernel tables on this CPU: " + names + "; --isa auto takes " +
                   fastest->name + "\n"));
  return kExitDone;
}

}  // namespace sluice
