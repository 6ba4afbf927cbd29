#include "format/checkpoint.h"

#include <optional>
#include <system_error>
#include <utility>

#include "format/checkpoint_binder.h"
#include "format/shard_index.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kConfigBytesMax = uint64_t{1} << 24;
constexpr std::string_view kNestedPrefix = "language_model.";  // K3; Kimi-Linear has none

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Result<Config> read_config(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  TRY(const std::string text, read_text_file(path, kConfigBytesMax));
  TRY(Config config, parse_config(text, path.string()));
  const fs::path generation = directory / "generation_config.json";
  if (is_present(generation)) {
    TRY(const std::string generation_text, read_text_file(generation, kConfigBytesMax));
    TRY_OK(apply_generation_config(generation_text, generation.string(), config));
  }
  return config;
}

Result<std::vector<File>> open_shards(const fs::path& directory,
                                      const std::vector<std::string>& names, Direct direct) {
  size_t n_missing = 0;
  std::string first_missing;
  for (const std::string& name : names) {
    if (is_present(directory / name)) continue;
    if (n_missing++ == 0) first_missing = name;
  }
  if (n_missing > 0) {
    return Error{Code::kIo, directory.string() + ": " + std::to_string(n_missing) + " of " +
                                std::to_string(names.size()) +
                                " shards are missing, the first is " + first_missing +
                                ": download them"};
  }
  std::vector<File> files;
  files.reserve(names.size());
  for (const std::string& name : names) {
    TRY(File file, File::open(directory / name, direct));
    files.push_back(std::move(file));
  }
  return files;
}

// The prefix that tensor names carry, by the index or else by the headers.
Result<std::string> find_prefix(const std::optional<ShardIndex>& index,
                                const std::vector<File>& files) {
  bool is_nested = false;
  if (index) {
    for (const auto& [name, entry] : index->tensors) {
      is_nested = name.starts_with(kNestedPrefix);
      if (is_nested) break;
    }
  } else {
    for (const File& file : files) {
      TRY_OK(read_safetensors_header(file, [&](std::string_view name, const TensorInfo&) {
        is_nested = is_nested || name.starts_with(kNestedPrefix);
        return Status(Ok{});
      }));
    }
  }
  return std::string(is_nested ? kNestedPrefix : "");
}

// The header's tensor must be listed in the index for this file.
Status check_listed(ShardIndex& index, const File& file, int32_t file_index,
                    std::string_view name) {
  const auto found = index.tensors.find(name);
  if (found != index.tensors.end() && found->second.file == file_index) {
    found->second.found = true;
    return Ok{};
  }
  const std::string listed = found == index.tensors.end()
                                 ? "not at all"
                                 : "in " + index.files[static_cast<size_t>(found->second.file)];
  return Error{Code::kCorrupt, file.path() + ": tensor \"" + std::string(name) + "\" is listed " +
                                   listed +
                                   " by model.safetensors.index.json: download both again"};
}

// Every tensor of the index must have been found in its file.
Status check_all_found(const ShardIndex& index, int64_t n_found, const fs::path& directory) {
  if (n_found == static_cast<int64_t>(index.tensors.size())) return Ok{};
  const std::string* first = nullptr;
  int32_t file = -1;
  for (const auto& [name, entry] : index.tensors) {
    if (entry.found || (first && *first < name)) continue;
    first = &name;
    file = entry.file;
  }
  CHECK(first != nullptr);
  return Error{Code::kCorrupt, (directory / index.files[static_cast<size_t>(file)]).string() +
                                   ": tensor \"" + *first +
                                   "\" is listed by model.safetensors.index.json, but the file "
                                   "does not have it: download it again"};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& directory, Direct direct) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return Error{Code::kIo,
                 directory.string() + " is not a directory: name one with config.json and shards"};
  }
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  TRY(checkpoint.config_, read_config(directory));

  std::optional<ShardIndex> index;
  std::vector<std::string> names = {"model.safetensors"};
  const fs::path index_path = directory / "model.safetensors.index.json";
  if (is_present(index_path)) {
    TRY(index, read_shard_index(index_path));
    names = index->files;
  } else if (!is_present(directory / names.front())) {
    return Error{Code::kIo, directory.string() +
                                " has neither model.safetensors.index.json nor model.safetensors: "
                                "download the checkpoint"};
  }
  TRY(checkpoint.files_, open_shards(directory, names, direct));
  TRY(std::string prefix, find_prefix(index, checkpoint.files_));

  CheckpointBinder binder(checkpoint, std::move(prefix));
  for (int32_t i = 0; i < static_cast<int32_t>(checkpoint.files_.size()); ++i) {
    const File& file = checkpoint.file(i);
    TRY_OK(read_safetensors_header(file, [&](std::string_view name, const TensorInfo& info) {
      if (index) {
        if (Status status = check_listed(*index, file, i, name); !status.ok()) return status;
      }
      return binder.add(i, name, info);
    }));
  }
  if (index) TRY_OK(check_all_found(*index, checkpoint.n_tensors_, directory));
  TRY_OK(binder.finish());
  return checkpoint;
}

ExpertRef Checkpoint::expert(ExpertKey key) const {
  CHECK(key.layer.v >= 0 && key.layer.v < config_.n_layers && config_.is_moe(key.layer));
  CHECK(key.expert.v >= 0 && key.expert.v < config_.moe.n_experts);
  return experts_[static_cast<size_t>(key.layer.v * config_.moe.n_experts + key.expert.v)];
}

uint64_t Checkpoint::expert_bytes() const {
  return static_cast<uint64_t>(n_experts_bound_) * expert_layout_.record_bytes;
}

}  // namespace sluice
