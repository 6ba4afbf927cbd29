#include "format/checkpoint.h"

#include <optional>
#include <system_error>
#include <utility>

#include "format/checkpoint_binder.h"
#include "format/fingerprint.h"
#include "format/leading_layers.h"
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

Result<Config> read_config(const fs::path& directory, std::string& text) {
  const fs::path path = directory / "config.json";
  TRY(text, read_text_file(path, kConfigBytesMax));
  TRY(Config config, parse_config(text, path.string()));
  const fs::path generation = directory / "generation_config.json";
  if (is_present(generation)) {
    TRY(const std::string generation_text, read_text_file(generation, kConfigBytesMax));
    TRY_OK(apply_generation_config(generation_text, generation.string(), config));
  }
  return config;
}

Result<std::vector<FilePtr>> open_shards(const fs::path& directory,
                                         const std::vector<std::string>& names, Direct direct,
                                         const OpenFile& open_file) {
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
  std::vector<FilePtr> files;
  files.reserve(names.size());
  for (const std::string& name : names) {
    TRY(FilePtr file, open_file(directory / name, direct));
    files.push_back(std::move(file));
  }
  return files;
}

// The index, or what an index of the single model.safetensors would say.
Result<ShardIndex> read_index(const fs::path& directory) {
  constexpr const char* kSingle = "model.safetensors";
  const fs::path path = directory / "model.safetensors.index.json";
  if (is_present(path)) return read_shard_index(path);
  if (!is_present(directory / kSingle)) {
    return Error{Code::kIo, directory.string() +
                                " has neither model.safetensors.index.json nor model.safetensors: "
                                "download the checkpoint"};
  }
  ShardIndex index;
  index.files = {kSingle};
  TRY(const FilePtr file, File::open(directory / kSingle, Direct::kOff));
  TRY_OK(read_safetensors_header(*file, [&](std::string_view name, const TensorInfo&) {
    if (index.tensors.insert(name).second) index.entries.push_back({.file = 0});
    return Status(Ok{});
  }));
  return index;
}

std::string_view find_prefix(const ShardIndex& index) {
  for (uint32_t i = 0; i < index.tensors.size(); ++i) {
    if (index.tensors.name(i).starts_with(kNestedPrefix)) return kNestedPrefix;
  }
  return "";
}

// The header's tensor must be listed in the index for this file.
Status check_listed(ShardIndex& index, const File& file, int32_t file_index,
                    std::string_view name) {
  const std::optional<uint32_t> number = index.tensors.find(name);
  IndexEntry* const entry = number ? &index.entries[*number] : nullptr;
  if (entry && entry->file == file_index) {
    entry->found = true;
    return Ok{};
  }
  const std::string listed = !entry ? "not at all"
                             : entry->file < 0
                                 ? "in another shard"
                                 : "in " + index.files[static_cast<size_t>(entry->file)];
  return Error{Code::kCorrupt, file.path() + ": tensor \"" + std::string(name) + "\" is listed " +
                                   listed +
                                   " by model.safetensors.index.json: download both again"};
}

// Every tensor of the index must have been found in its file. Names the first by name.
Status check_all_found(const ShardIndex& index, const fs::path& directory) {
  std::optional<uint32_t> first;
  for (uint32_t i = 0; i < index.entries.size(); ++i) {
    if (index.entries[i].found || index.entries[i].file < 0) continue;
    if (!first || index.tensors.name(i) < index.tensors.name(*first)) first = i;
  }
  if (!first) return Ok{};
  const std::string& file = index.files[static_cast<size_t>(index.entries[*first].file)];
  return Error{Code::kCorrupt, (directory / file).string() + ": tensor \"" +
                                   std::string(index.tensors.name(*first)) +
                                   "\" is listed by model.safetensors.index.json, but the file "
                                   "does not have it: download it again"};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const fs::path& directory, Direct direct,
                                    const OpenOptions& options) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return Error{Code::kIo,
                 directory.string() + " is not a directory: name one with config.json and shards"};
  }
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  std::string config_text;
  TRY(checkpoint.config_, read_config(directory, config_text));
  checkpoint.n_layers_configured_ = checkpoint.config_.n_layers;
  TRY(ShardIndex index, read_index(directory));
  const std::string prefix(find_prefix(index));
  if (options.leading_layers) {
    TRY_OK(
        keep_leading_layers(directory, prefix, *options.leading_layers, checkpoint.config_, index));
  }
  TRY(checkpoint.files_, open_shards(directory, index.files, direct, options.open_file));

  CheckpointBinder binder(checkpoint, prefix);
  std::vector<uint64_t> header_bytes;  // of each file, its length included
  for (int32_t i = 0; i < static_cast<int32_t>(checkpoint.files_.size()); ++i) {
    const File& file = checkpoint.file(i);
    TRY(const SafetensorsHeader header,
        read_safetensors_header(file, [&](std::string_view name, const TensorInfo& info) {
          if (Status status = check_listed(index, file, i, name); !status.ok()) return status;
          return binder.add(i, name, info);
        }));
    header_bytes.push_back(header.payload_begin);
  }
  TRY_OK(check_all_found(index, directory));
  TRY_OK(binder.finish());
  if (!options.leading_layers) {
    TRY(checkpoint.identity_, hash_identity(config_text, index, checkpoint.files_, header_bytes));
  }
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
