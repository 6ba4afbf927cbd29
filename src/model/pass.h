// One pass in progress: the batch cut into sequences and tiles of rows, and everything the blocks of a
// layer need at hand. The model keeps it between passes, so that a pass allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "format/config.h"
#include "kernels/linear.h"
#include "model/batch.h"
#include "model/capture.h"
#include "model/state.h"
#include "model/workspace.h"

namespace sluice {

struct PassSequence {
  State* state;
  RowFate fate;
  int64_t first_row;      // in the pass
  int64_t n_rows;
  int64_t base_position;  // position of the first row
};

// The rows of one sequence inside a tile.
struct TilePart {
  const PassSequence* sequence;
  int64_t first;     // index of the first of them among the sequence's rows
  int64_t tile_row;  // index of the first of them in the tile
  int64_t n_rows;
};

// At most kTileRows consecutive rows of the pass. Tentative rows of a sequence share a tile: their KDA
// state lives in scratch.
struct Tile {
  int64_t first_row;
  int64_t n_rows;
  size_t parts_begin;  // in Pass::parts
  size_t n_parts;
};

struct Pass {
  const Config& config;
  const Compute& compute;
  Workspace& workspace;
  float qkv_norm_eps;
  // Of the batch at hand, filled by cut_into_tiles().
  Capture* capture = nullptr;  // may be null
  int64_t n_rows = 0;
  std::vector<PassSequence> sequences = {};
  std::vector<TilePart> parts = {};
  std::vector<Tile> tiles = {};

  const KernelTable& k() const { return *compute.k; }
  std::span<const TilePart> parts_of(const Tile& tile) const {
    return std::span(parts).subspan(tile.parts_begin, tile.n_parts);
  }
  // The rows of `tile` in an array over all rows of the pass.
  Rows rows_of(const Tile& tile, Rows all) const {
    return {all.row(tile.first_row), tile.n_rows, all.stride};
  }
};

// Replaces the pass's batch: fills sequences, parts and tiles from `batch`.
void cut_into_tiles(const Batch& batch, Capture* capture, Pass& pass);

// fn(row) for each of n rows, split over the threads.
template <class Fn>
void for_each_row(const Compute& compute, int64_t n_rows, Fn fn) {
  const auto some = [&](int worker, int workers) {
    const Slice mine = slice(n_rows, worker, workers);
    for (int64_t row = mine.begin; row < mine.end; ++row) fn(row);
  };
  n_rows == 1 ? some(0, 1) : compute.pool->run(some);
}

}  // namespace sluice
