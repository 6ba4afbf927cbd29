// Where what we make of a checkpoint lies (contracts 3), and the int8 pack that may be there.
// Pure functions over files; thread-safe.
#pragma once

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "engine/options.h"
#include "format/checkpoint.h"
#include "format/pack_file.h"
#include "format/pack_layout.h"

namespace sluice {

// options.work_dir, else <snapshot>/.sluice if that can be written, else a directory named by the
// fingerprint under options.cache_home. kInvalid when none of them is at hand.
Result<std::filesystem::path> work_directory(const Checkpoint& checkpoint,
                                             const EngineOptions& options);

// The checkpoint's pack, or null when the work directory has no file of its name. Errors are those
// of PackFile::open.
Result<std::unique_ptr<PackFile>> find_pack(const Checkpoint& checkpoint,
                                            const EngineOptions& options);

}  // namespace sluice
