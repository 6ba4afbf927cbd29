#include "model/pages.h"

#include <string>

namespace sluice {

PageShape::PageShape(const Config& config) : latent_dim(config.mla.latent_dim()) {
  for (const bool kda : config.layer_is_kda) n_mla_layers += kda ? 0 : 1;
}

PagePool::PagePool(PageShape shape, int64_t positions)
    : shape_(shape),
      n_pages_((positions + kPagePositions - 1) / kPagePositions),
      memory_(static_cast<uint64_t>(n_pages_ * shape.floats()) * sizeof(float)) {
  free_.reserve(static_cast<size_t>(n_pages_));
  for (int64_t page = n_pages_; page-- > 0;) free_.push_back(static_cast<int32_t>(page));
}

Result<int32_t> PagePool::take() {
  if (free_.empty()) {
    return Error{Code::kBudget, "the context of " + std::to_string(positions_max()) +
                                    " positions is full; raise --context"};
  }
  const int32_t page = free_.back();
  free_.pop_back();
  return page;
}

void PagePool::give_back(int32_t page) { free_.push_back(page); }

}  // namespace sluice
