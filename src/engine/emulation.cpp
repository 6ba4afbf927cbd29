#include "engine/emulation.h"

#include <utility>

namespace sluice {

Result<std::shared_ptr<const GeneratedModel>> emulate_drives(EngineOptions& options) {
  if (!options.emulated_drives) return std::shared_ptr<const GeneratedModel>();
  TRY(std::shared_ptr<const GeneratedModel> model,
      GeneratedModel::open(options.model, *options.emulated_drives));
  options.open_file = [model](const std::filesystem::path& path, Direct) {
    return model->open_file(path);
  };
  return model;
}

}  // namespace sluice
