// Which sequences get how many rows of the next pass. Pure function; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// A sequence that wants rows, in the order of admission.
struct RowDemand {
  int64_t rows = 0;         // tokens that are not computed yet, at least 1
  bool decoding = false;    // the only row is the token drawn last
  bool all_logits = false;  // logits of every row are wanted, not of the last alone
};

struct RowLimits {
  int64_t rows_max = 0;            // of a pass
  int64_t rows_with_decoding = 0;  // of prompts in a pass that also decodes
  int64_t logit_rows_max = 0;      // rows of a pass whose logits may be wanted
};

// Rows of each sequence in the next pass; some may get none. Every decoding sequence gets its row.
// Of what is left the oldest prompt may take half, then the shortest remainders come first, so that
// a short prompt does not wait for a long one and a long one always goes on. rows_max is at least
// the number of sequences, logit_rows_max too.
std::vector<int64_t> share_rows(std::span<const RowDemand> demands, const RowLimits& limits);

}  // namespace sluice
