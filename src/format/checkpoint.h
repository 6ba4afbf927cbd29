// A Hugging Face snapshot read in place: config.json, index, shard headers; every needed tensor
// bound once to (file, offset, bytes) with its shape and dtype checked. Immutable after open;
// thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "format/config.h"
#include "format/safetensors.h"
#include "format/tensor_names.h"
#include "io/file.h"

namespace sluice {

// A bound tensor; absent roles have file < 0.
struct TensorRef {
  int32_t file = -1;  // index into Checkpoint::files()
  Dtype dtype = Dtype::kOther;
  TensorKind kind = TensorKind::kMatrix;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  // [rows, cols]; a vector has rows 1; a conv [C, 1, K] has cols K. `bytes` is theirs: the padding
  // of a longer A_log (spec 12.1) is left out.
  int64_t rows = 0, cols = 0;
  bool present() const { return file >= 0; }
};
using TensorSet = std::array<TensorRef, kRoles>;

enum class ExpertFormat : uint8_t { kMxfp4, kBf16 };

// Where the pieces of every expert lie inside its contiguous record, and how large a record is.
struct ExpertLayout {
  ExpertFormat format = ExpertFormat::kMxfp4;
  uint64_t record_bytes = 0;
  std::array<uint64_t, kExpertPieces> piece_offset{};  // scales unused for kBf16
  std::array<uint64_t, kExpertPieces> piece_bytes{};
};

struct ExpertRef {
  int32_t file = -1;
  uint64_t offset = 0;  // of the record of ExpertLayout::record_bytes bytes
};

// How a checkpoint is opened, beside its directory.
struct OpenOptions {
  // At most this many layers, fewer where a shard that the next one needs is missing. Shards of
  // which no tensor is needed may be missing too.
  std::optional<int64_t> leading_layers;
  OpenFile open_file = File::open;  // for the shards
};

class Checkpoint {
 public:
  // Reads config.json (and generation_config.json), the index or the single model.safetensors, and
  // every shard header. Errors name the file or tensor: kIo (missing directory, file, shard),
  // kInvalid (config), kCorrupt (truncated, missing or odd tensor, expert not contiguous),
  // kUnsupported (experts cut by shards or of several layouts, unknown tensors inside a layer).
  // With leading_layers, config().n_layers is the number of layers that were opened, at least 1.
  static Result<Checkpoint> open(const std::filesystem::path& directory, Direct direct,
                                 const OpenOptions& options = {});

  const std::filesystem::path& directory() const { return directory_; }
  const Config& config() const { return config_; }
  int64_t n_layers_configured() const { return n_layers_configured_; }  // as config.json says
  // The fingerprint (fingerprint.h) as 64 hex digits; empty when opened in part.
  const std::string& identity() const { return identity_; }
  const std::vector<FilePtr>& files() const { return files_; }
  const File& file(int32_t index) const { return *files_[static_cast<size_t>(index)]; }

  const TensorRef& global(Role role) const { return globals_[static_cast<size_t>(role)]; }
  const TensorRef& tensor(LayerId layer, Role role) const {
    return layers_[static_cast<size_t>(layer.v)][static_cast<size_t>(role)];
  }
  const ExpertLayout& expert_layout() const { return expert_layout_; }
  ExpertRef expert(ExpertKey key) const;  // CHECKs that the layer is MoE and the id in range

  // Payload of all bound tensors that are no routed expert, as stored (with A_log's padding).
  uint64_t spine_bytes() const { return spine_bytes_; }
  uint64_t layer_bytes(LayerId layer) const {  // of it what one layer takes
    return layer_bytes_[static_cast<size_t>(layer.v)];
  }
  uint64_t expert_bytes() const;                                // payload of all bound experts
  int64_t n_experts_total() const { return n_experts_bound_; }  // over all layers
  int64_t n_tensors() const { return n_tensors_; }              // in all shards, bound or not
  // Names of tensors that no role claims (vision tower, projector), at most the first 8, and a
  // count.
  const std::vector<std::string>& unclaimed() const { return unclaimed_; }
  int64_t n_unclaimed() const { return n_unclaimed_; }

 private:
  friend class CheckpointBinder;
  std::filesystem::path directory_;
  Config config_;
  int64_t n_layers_configured_ = 0;
  std::string identity_;
  std::vector<FilePtr> files_;
  TensorSet globals_{};
  std::vector<TensorSet> layers_;  // [n_layers]
  ExpertLayout expert_layout_;
  std::vector<ExpertRef> experts_;  // [n_layers * n_experts], absent for dense layers
  int64_t n_experts_bound_ = 0;
  uint64_t spine_bytes_ = 0;
  std::vector<uint64_t> layer_bytes_;  // [n_layers]
  int64_t n_tensors_ = 0;
  std::vector<std::string> unclaimed_;
  int64_t n_unclaimed_ = 0;
};

}  // namespace sluice
