// --emulate-drive: the model's files on drives that do not exist (format/generated_model.h).
// Thread-safe.
#pragma once

#include <memory>

#include "base/error.h"
#include "engine/options.h"
#include "format/generated_model.h"

namespace sluice {

// Makes options.open_file that of the emulated drives which the options ask for, and returns the
// model on them; null when they ask for none. kInvalid when options.model has no generated weights.
Result<std::shared_ptr<const GeneratedModel>> emulate_drives(EngineOptions& options);

}  // namespace sluice
