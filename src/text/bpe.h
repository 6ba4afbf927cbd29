// Byte-pair merging of one piece (spec 6.3). Pure function; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/rank_table.h"

namespace sluice {

// Appends the ids of a non-empty `piece`: from single bytes, the adjacent pair whose joined bytes
// have the lowest rank is merged, the leftmost one on ties, until no pair has a rank. Time is
// O(n log n) in the length of the piece.
void append_bpe(const RankTable& ranks, std::string_view piece, std::vector<TokenId>& out);

}  // namespace sluice
