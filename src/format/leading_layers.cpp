#include "format/leading_layers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "format/tensor_names.h"

namespace sluice {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// For each shard the first layer that needs it: 0 for tensors outside the layers, kNever for none.
std::vector<int64_t> first_layers(const ShardIndex& index, std::string_view prefix,
                                  const Config& config) {
  const std::vector<TensorSpec> globals = global_tensors(config);
  const auto is_global = [&](std::string_view name) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return std::ranges::any_of(globals, [&](const TensorSpec& spec) { return spec.name == name; });
  };
  std::vector<int64_t> first(index.files.size(), kNever);
  for (uint32_t i = 0; i < index.entries.size(); ++i) {
    const std::string_view name = index.tensors.name(i);
    int64_t& least = first[static_cast<size_t>(index.entries[i].file)];
    const std::optional<LayerId> layer = parse_layer_name(name, prefix);
    if (layer) {
      least = std::min<int64_t>(least, layer->v);
    } else if (is_global(name)) {
      least = 0;
    }
  }
  return first;
}

}  // namespace

Status keep_leading_layers(const std::filesystem::path& directory, std::string_view prefix,
                           int64_t n_layers_max, Config& config, ShardIndex& index) {
  const std::vector<int64_t> first = first_layers(index, prefix, config);
  int64_t n_layers = std::min(n_layers_max, config.n_layers);
  for (size_t file = 0; file < index.files.size(); ++file) {
    std::error_code ignored;
    if (std::filesystem::exists(directory / index.files[file], ignored)) continue;
    n_layers = std::min(n_layers, first[file]);
    if (n_layers > 0) continue;
    return Error{Code::kIo, directory.string() + ": " + index.files[file] +
                                " is missing, and even layer 0 needs it: download it"};
  }
  config.n_layers = n_layers;
  config.layer_is_kda.resize(static_cast<size_t>(n_layers));

  std::vector<std::string> kept;
  std::vector<int32_t> new_id(index.files.size(), -1);
  for (size_t file = 0; file < index.files.size(); ++file) {
    if (first[file] >= n_layers) continue;
    new_id[file] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(index.files[file]));
  }
  index.files = std::move(kept);
  for (IndexEntry& entry : index.entries) entry.file = new_id[static_cast<size_t>(entry.file)];
  return Ok{};
}

}  // namespace sluice
