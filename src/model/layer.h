// One layer at hand inside a pass: its ids, its resident vectors, and its matrices by role.
// Valid while the spine lease lives.
#pragma once

#include "model/weights.h"
#include "store/spine_store.h"

namespace sluice {

struct Layer {
  LayerId id;
  int64_t kind_index;  // index among the KDA layers, or among the MLA layers
  const LayerVectors& vectors;
  const SpineLease& spine;

  Matrix matrix(Role role) const { return to_matrix(spine.matrix(role)); }
};

}  // namespace sluice
