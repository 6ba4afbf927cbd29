#include "engine/checkpoint_sizes.h"

#include "model/pages.h"
#include "model/state.h"

namespace sluice {

CheckpointSizes checkpoint_sizes(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  CheckpointSizes sizes;
  sizes.n_tensors = checkpoint.n_tensors();
  sizes.n_unclaimed = checkpoint.n_unclaimed();
  sizes.spine_bytes = checkpoint.spine_bytes();
  for (int32_t layer = 0; layer < config.n_layers; ++layer) {
    sizes.layer_bytes.push_back(checkpoint.layer_bytes(LayerId{layer}));
  }
  const TensorRef& embed = checkpoint.global(Role::kEmbedTokens);
  const TensorRef& head = checkpoint.global(Role::kLmHead);
  const bool tied = head.file == embed.file && head.offset == embed.offset;
  sizes.embed_head_bytes = embed.bytes + (tied ? 0 : head.bytes);
  const KdaShape kda(config);
  sizes.kda_state_bytes = static_cast<uint64_t>(kda.n_layers * kda.layer_floats()) * sizeof(float);
  const PageShape pages(config);
  sizes.latent_bytes_per_token =
      static_cast<uint64_t>(pages.n_mla_layers * pages.latent_dim) * sizeof(float);
  return sizes;
}

}  // namespace sluice
