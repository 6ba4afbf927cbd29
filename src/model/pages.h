// Memory of the MLA cache: pages of 256 positions for all MLA layers, taken once from the plan.
// One owner.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "format/config.h"

namespace sluice {

constexpr int64_t kPagePositions = 256;     // contracts 4
constexpr int64_t kAttentionBlock = 64;     // FORMAT 1.7; divides a page

// Shape of the latent cache of one checkpoint.
struct PageShape {
  int64_t n_mla_layers = 0;
  int64_t latent_dim = 0;  // kv_lora + rope
  explicit PageShape(const Config& config);
  int64_t floats() const { return n_mla_layers * kPagePositions * latent_dim; }
};

class PagePool {
 public:
  // Room for `positions` positions in all, rounded up to pages. The system commits it on first use.
  PagePool(PageShape shape, int64_t positions);

  const PageShape& shape() const { return shape_; }
  int64_t positions_max() const { return n_pages_ * kPagePositions; }
  // Index of a free page; kBudget when all are in use, naming the limit and --context.
  Result<int32_t> take();
  void give_back(int32_t page);
  // Latent rows of one layer of one page: [kPagePositions, latent_dim].
  float* rows(int32_t page, int64_t mla_layer) const {
    return reinterpret_cast<float*>(memory_.data()) + page * shape_.floats() +
           mla_layer * kPagePositions * shape_.latent_dim;
  }

 private:
  PageShape shape_;
  int64_t n_pages_;
  AlignedBuffer memory_;
  std::vector<int32_t> free_;  // taken from the back
};

}  // namespace sluice
