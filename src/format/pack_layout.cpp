#include "format/pack_layout.h"

#include <utility>

#include "base/aligned_buffer.h"
#include "format/pack_codec.h"

namespace sluice {
namespace {

constexpr uint64_t kTensorAlignment = 64;

bool is_quantised(const TensorSpec& spec) {
  return spec.kind == TensorKind::kMatrix && spec.role != Role::kRouter;
}

PackTensor make_tensor(TensorSpec spec, const TensorRef& source) {
  PackTensor tensor;
  tensor.role = spec.role;
  tensor.name = std::move(spec.name);
  tensor.kind = spec.kind;
  tensor.rows = source.rows;
  tensor.cols = source.cols;
  tensor.dtype = is_quantised(spec) ? Dtype::kI8 : source.dtype;
  tensor.bytes = source.bytes;
  if (tensor.has_scales()) {
    tensor.bytes = tensor.scales_at() + static_cast<uint64_t>(tensor.rows) * sizeof(float);
  }
  tensor.shape = std::move(spec.shape);
  return tensor;
}

// The group of these tensors from `offset` on.
PackGroup make_group(const Checkpoint& checkpoint, size_t index,
                     const std::vector<TensorSpec>& specs, uint64_t offset) {
  PackGroup group;
  group.offset = offset;
  for (const TensorKind kind : {TensorKind::kMatrix, TensorKind::kVector}) {
    for (const TensorSpec& spec : specs) {
      if (spec.kind != kind) continue;
      PackTensor tensor = make_tensor(spec, pack_source(checkpoint, index, spec.role));
      tensor.offset = round_up(offset, kTensorAlignment);
      offset = tensor.offset + tensor.bytes;
      group.entries_bytes += pack_entry_bytes(tensor);
      group.tensors.push_back(std::move(tensor));
    }
    if (kind == TensorKind::kMatrix) group.matrix_bytes = offset - group.offset;
  }
  group.bytes = offset - group.offset;
  return group;
}

}  // namespace

const PackTensor* PackGroup::find(Role role) const {
  for (const PackTensor& tensor : tensors) {
    if (tensor.role == role) return &tensor;
  }
  return nullptr;
}

uint64_t PackLayout::payload_bytes() const {
  uint64_t bytes = 0;
  for (const PackGroup& group : groups) {
    for (const PackTensor& tensor : group.tensors) bytes += tensor.bytes;
  }
  return bytes;
}

PackLayout plan_pack(const Checkpoint& checkpoint, std::string fingerprint) {
  const Config& config = checkpoint.config();
  PackLayout layout;
  layout.fingerprint = std::move(fingerprint);
  uint64_t offset = kPackHeaderBytes;
  const auto add = [&](const std::vector<TensorSpec>& specs) {
    offset = round_up(offset, kPageBytes);
    layout.groups.push_back(make_group(checkpoint, layout.groups.size(), specs, offset));
    offset += layout.groups.back().bytes;
  };
  for (int32_t layer = 0; layer < config.n_layers; ++layer) {
    add(layer_tensors(config, LayerId{layer}));
  }
  for (const TensorSpec& spec : global_tensors(config)) {
    if (spec.role == Role::kLmHead) add({spec});
  }
  layout.table_offset = round_up(offset, kPageBytes);
  layout.table_bytes = kPackTableHeadBytes;
  for (PackGroup& group : layout.groups) {
    group.entries_offset = layout.table_offset + layout.table_bytes;
    layout.table_bytes += group.entries_bytes;
  }
  layout.file_bytes = layout.table_offset + layout.table_bytes + kPackFooterBytes;
  return layout;
}

const TensorRef& pack_source(const Checkpoint& checkpoint, size_t group, Role role) {
  const bool is_head = group == static_cast<size_t>(checkpoint.config().n_layers);
  return is_head ? checkpoint.global(role)
                 : checkpoint.tensor(LayerId{static_cast<int32_t>(group)}, role);
}

}  // namespace sluice
