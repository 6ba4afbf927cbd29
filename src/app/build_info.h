// What this binary was built from. Immutable.
#pragma once

namespace sluice {

struct BuildInfo {
  const char* version;
  const char* commit;    // of configure time, or "unknown" outside a repository
  bool dirty;            // whether the sources then differed from the commit
  const char* compiler;
};
const BuildInfo& build_info();

}  // namespace sluice
