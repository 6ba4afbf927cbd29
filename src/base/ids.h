// Indices that cannot be mistaken for one another: a layer is not an expert. Plain values.
#pragma once

#include <compare>
#include <cstdint>

namespace sluice {

template <class Tag>
struct Id {
  int32_t v = -1;
  auto operator<=>(const Id&) const = default;
};

using LayerId = Id<struct LayerTag>;    // 0-based decoder layer
using ExpertId = Id<struct ExpertTag>;  // 0-based routed expert of one layer

struct ExpertKey {
  LayerId layer;
  ExpertId expert;
  auto operator<=>(const ExpertKey&) const = default;
};

using TokenId = int32_t;  // vocabulary id; 0 <= id < vocab_size

}  // namespace sluice
