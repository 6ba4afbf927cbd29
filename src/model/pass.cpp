#include "model/pass.h"

#include <algorithm>

namespace sluice {

void cut_into_tiles(const Batch& batch, Capture* capture, Pass& pass) {
  pass.capture = capture;
  pass.n_rows = 0;
  pass.sequences.clear();
  pass.parts.clear();
  pass.tiles.clear();
  for (const SequenceRows& rows : batch.sequences) {
    const auto n = static_cast<int64_t>(rows.tokens.size());
    pass.sequences.push_back({rows.state, rows.fate, pass.n_rows, n, rows.state->length()});
    pass.n_rows += n;
  }
  for (const PassSequence& sequence : pass.sequences) {
    for (int64_t first = 0; first < sequence.n_rows;) {
      const int64_t left = sequence.n_rows - first;
      const int64_t room = pass.tiles.empty() ? 0 : kTileRows - pass.tiles.back().n_rows;
      const bool fits = sequence.fate == RowFate::kTentative ? room >= left : room > 0;
      if (!fits) pass.tiles.push_back({sequence.first_row + first, 0, pass.parts.size(), 0});
      Tile& tile = pass.tiles.back();
      const int64_t n = std::min(left, kTileRows - tile.n_rows);
      pass.parts.push_back({&sequence, first, tile.n_rows, n});
      ++tile.n_parts;
      tile.n_rows += n;
      first += n;
    }
  }
}

}  // namespace sluice
