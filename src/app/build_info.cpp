#include "app/build_info.h"

namespace sluice {

// The macros are set by CMake.
const BuildInfo& build_info() {
  static constexpr BuildInfo kInfo = {.version = SLUICE_VERSION,
                                      .commit = SLUICE_COMMIT,
                                      .dirty = SLUICE_DIRTY != 0,
                                      .compiler = SLUICE_COMPILER};
  return kInfo;
}

}  // namespace sluice
