#include "app/default_model.h"

#include <system_error>

namespace sluice {

std::filesystem::path default_model() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path in_source(SLUICE_SOURCE_MODEL);  // set by CMake
  if (fs::exists(in_source / "config.json", error)) return in_source;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  return executable.parent_path().parent_path() / SLUICE_DATA_DIR / "sluice" / "tiny-k3";
}

}  // namespace sluice
