#include "format/checkpoint_binder.h"

#include <optional>
#include <utility>

namespace sluice {
namespace {

constexpr size_t kUnclaimedShown = 8;

// The stored bytes of `shape` are those of the spec; a padded vector may be longer and of any rank.
bool is_shape_right(const TensorSpec& spec, const std::vector<int64_t>& shape) {
  if (!spec.padded) return shape == spec.shape;
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;  // a header's product fits its file
  return elements >= spec.shape.front();
}

}  // namespace

CheckpointBinder::CheckpointBinder(Checkpoint& checkpoint, std::string prefix)
    : checkpoint_(checkpoint), prefix_(std::move(prefix)), experts_(checkpoint.config_, prefix_) {
  const Config& config = checkpoint.config_;
  checkpoint_.layers_.resize(static_cast<size_t>(config.n_layers));
  checkpoint_.layer_bytes_.resize(static_cast<size_t>(config.n_layers));
  add_needs(-1, global_tensors(config));
  for (int32_t layer = 0; layer < config.n_layers; ++layer) {
    add_needs(layer, layer_tensors(config, LayerId{layer}));
  }
}

Status CheckpointBinder::add(int32_t file_index, std::string_view name, const TensorInfo& info) {
  ++checkpoint_.n_tensors_;
  const std::optional<ExpertName> expert = parse_expert_name(name, prefix_);
  if (expert && expert->layer.v < checkpoint_.config_.n_layers) {
    return experts_.add(*expert, checkpoint_.file(file_index), file_index, name, info);
  }
  if (const auto need = names_.find(name)) return bind(needs_[*need], file_index, name, info);
  return add_unclaimed(file_index, name);
}

Status CheckpointBinder::finish() {
  for (const Need& need : needs_) {
    if (need.bound || need.spec.optional) continue;
    return Error{Code::kCorrupt, checkpoint_.directory_.string() + ": tensor \"" + prefix_ +
                                     need.spec.name +
                                     "\" is in no shard, but config.json implies it: download the "
                                     "checkpoint again"};
  }
  TensorRef& head = checkpoint_.globals_[static_cast<size_t>(Role::kLmHead)];
  if (!head.present()) head = checkpoint_.global(Role::kEmbedTokens);
  auto experts = experts_.finish();
  if (!experts.ok()) {
    return Error{experts.error().code,
                 checkpoint_.directory_.string() + ": " + experts.error().what};
  }
  checkpoint_.expert_layout_ = experts.value().layout;
  checkpoint_.experts_ = std::move(experts.value().experts);
  checkpoint_.n_experts_bound_ = experts.value().n_bound;
  return Ok{};
}

void CheckpointBinder::add_needs(int32_t layer, std::vector<TensorSpec> specs) {
  for (TensorSpec& spec : specs) {
    CHECK(names_.insert(prefix_ + spec.name).second);
    needs_.push_back(Need{layer, std::move(spec), false});
  }
}

Status CheckpointBinder::bind(Need& need, int32_t file_index, std::string_view name,
                              const TensorInfo& info) {
  const std::string where =
      checkpoint_.file(file_index).path() + ": tensor \"" + std::string(name) + "\" ";
  if (need.bound) return Error{Code::kCorrupt, where + "appears in another shard too"};
  if (const Status status = check_tensor(need.spec, info); !status.ok()) {
    return Error{status.error().code, where + status.error().what};
  }
  const std::vector<int64_t>& shape = need.spec.shape;
  TensorRef ref;
  ref.file = file_index;
  ref.dtype = info.dtype;
  ref.kind = need.spec.kind;
  ref.offset = info.offset;
  ref.rows = shape.size() == 1 ? 1 : shape.front();
  ref.cols = shape.back();
  ref.bytes = static_cast<uint64_t>(ref.rows * ref.cols) * dtype_bytes(info.dtype);
  slot(need) = ref;
  need.bound = true;
  checkpoint_.spine_bytes_ += info.bytes;
  if (need.layer >= 0) checkpoint_.layer_bytes_[static_cast<size_t>(need.layer)] += info.bytes;
  return Ok{};
}

Status CheckpointBinder::check_tensor(const TensorSpec& spec, const TensorInfo& info) const {
  const bool is_vector = spec.kind == TensorKind::kVector;
  const bool dtype_right = info.dtype == Dtype::kBf16 || (is_vector && info.dtype == Dtype::kF32);
  if (!dtype_right) {
    return Error{Code::kCorrupt, std::string("is ") + dtype_name(info.dtype) + ", expected BF16" +
                                     (is_vector ? " or F32" : "")};
  }
  if (is_shape_right(spec, info.shape)) return Ok{};
  return Error{Code::kCorrupt, "has shape " + shape_text(info.shape) +
                                   ", but config.json implies " + (spec.padded ? "at least " : "") +
                                   shape_text(spec.shape)};
}

// Tensors beside the decoder (vision tower, projector, extra layers) are left alone. One inside a
// decoder layer would change the arithmetic and is refused; rotary tables are never used
// (spec 4.5).
Status CheckpointBinder::add_unclaimed(int32_t file_index, std::string_view name) {
  const std::optional<LayerId> layer = parse_layer_name(name, prefix_);
  if (layer && layer->v < checkpoint_.config_.n_layers && !name.ends_with(".inv_freq")) {
    return Error{Code::kUnsupported,
                 checkpoint_.file(file_index).path() + ": tensor \"" + std::string(name) +
                     "\" belongs to a decoder layer, but the architecture that config.json "
                     "describes has no such tensor"};
  }
  ++checkpoint_.n_unclaimed_;
  if (checkpoint_.unclaimed_.size() < kUnclaimedShown) checkpoint_.unclaimed_.emplace_back(name);
  return Ok{};
}

TensorRef& CheckpointBinder::slot(const Need& need) {
  TensorSet& set =
      need.layer < 0 ? checkpoint_.globals_ : checkpoint_.layers_[static_cast<size_t>(need.layer)];
  return set[static_cast<size_t>(need.spec.role)];
}

}  // namespace sluice
