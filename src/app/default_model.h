// The model that runs when none is named: the bundled tiny-k3. Pure query of the file system.
#pragma once

#include <filesystem>

namespace sluice {

// models/tiny-k3 of the build tree if it is there, else <prefix>/share/sluice/tiny-k3 of the
// installation that this executable belongs to.
std::filesystem::path default_model();

}  // namespace sluice
