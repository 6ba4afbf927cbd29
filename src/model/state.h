// Everything a sequence remembers between passes: KDA state and convolution windows (fixed size) and
// MLA latent pages (growing). A pass never changes the committed part: a prompt writes a spare copy
// that replaces it on success, tentative rows are logged and replayed by commit().
// One owner. Invariant: what is committed is that of exactly the tokens 0 .. length() - 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "format/config.h"
#include "kernels/linear.h"
#include "model/pages.h"

namespace sluice {

// Sizes of the KDA part of a state, in floats.
struct KdaShape {
  int64_t n_layers = 0;  // KDA layers
  int64_t n_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // conv_size - 1 rows of raw projections
  explicit KdaShape(const Config& config);

  int64_t channels() const { return n_heads * head_dim; }
  int64_t recurrent_floats() const { return n_heads * head_dim * head_dim; }  // of one layer
  int64_t window_floats() const { return 3 * window * channels(); }           // q, k, v of one layer
  int64_t layer_floats() const { return recurrent_floats() + window_floats(); }
  // What replay needs of one row of one layer: raw q, k, v; then k, v, decay after the convolution;
  // then beta.
  int64_t log_row_floats() const { return 6 * channels() + n_heads; }
};

// One layer's KDA memory inside a State.
struct KdaMemory {
  float* recurrent;               // [heads, key, value]
  std::array<float*, 3> windows;  // q, k, v: [window, channels], oldest first
};

// One logged row of one layer.
struct KdaLogRow {
  std::array<float*, 3> raw;  // q, k, v projections [channels]
  float* k;                   // normalised [channels]
  float* v;                   // [channels]
  float* decay;               // [channels]
  float* beta;                // [heads]
};

// Moves a window of `window` raw rows [window, channels], oldest first, past `n_rows` rows; row_at(i)
// is the i-th of them.
template <class RowAt>
void shift_window(float* rows, int64_t window, int64_t channels, int64_t n_rows, RowAt row_at) {
  for (int64_t w = 0; w < window; ++w) {
    const int64_t from = w + n_rows;  // index into window rows followed by new rows
    const float* source = from < window ? rows + from * channels : row_at(from - window);
    std::copy_n(source, channels, rows + w * channels);
  }
}

class State {
 public:
  // An empty sequence. `log_rows_max` tentative rows a pass at most. `pages` outlives the state.
  State(const Config& config, PagePool& pages, int64_t log_rows_max);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  int64_t length() const { return length_; }            // committed tokens
  int64_t n_tentative() const { return n_tentative_; }  // rows of the last pass, awaiting commit
  int64_t log_rows_max() const { return log_rows_max_; }

  // Keeps the first `n_rows` tentative rows, 0 <= n_rows <= n_tentative(), and forgets the others: bit
  // for bit as if only those had been computed. Replays them on `compute`.
  void commit(int64_t n_rows, const Compute& compute);
  void rollback() { n_tentative_ = 0; }
  // Forgets everything; the pages go back to the pool.
  void reset();

  // Marks the committed length to return to: a copy in the spare, so it costs no memory. Commits leave
  // the mark alone; a pass that keeps rows writes the spare, so whoever starts one drops the mark.
  void mark();
  void drop_mark() { mark_length_ = -1; }
  int64_t mark_length() const { return mark_length_; }  // -1: none
  // The state is again what it was at the mark, and stays marked there.
  void return_to_mark();

  // For storing and restoring (engine/): the committed memory of all KDA layers [kda layers,
  // layer_floats], and page number `index` [mla layers, kPagePositions, latent_dim], of which rows
  // below length() count.
  std::span<float> kda_floats() { return committed_.span(); }
  std::span<const float> kda_floats() const { return committed_.span(); }
  std::span<float> page_floats(int64_t index) const;
  // Empties the state and takes pages for `length` positions (kBudget leaves it empty); it becomes
  // one of `length` tokens when finish_restore() says that all floats are there.
  Status begin_restore(int64_t length);
  void finish_restore(int64_t length) { length_ = length; }

  // For the pass (model/ only).
  // Room for `n_rows` rows more; kBudget leaves the state as it was.
  Status reserve(int64_t n_rows);
  void finish_keep(int64_t n_rows);       // the spare becomes the committed state
  void finish_tentative(int64_t n_rows);  // the log holds n_rows rows
  KdaMemory committed(int64_t kda_layer) { return memory(committed_, kda_layer); }
  KdaMemory spare(int64_t kda_layer) { return memory(spare_, kda_layer); }
  KdaLogRow log_row(int64_t kda_layer, int64_t row);
  // Latent row of a position below length() + reserved rows: [latent_dim].
  float* latent(int64_t mla_layer, int64_t position) const;

  const KdaShape& kda_shape() const { return kda_; }
  const PageShape& page_shape() const { return pages_->shape(); }

 private:
  KdaMemory memory(FloatBuffer& buffer, int64_t kda_layer) const;
  void replay_head(int64_t kda_layer, int64_t head, int64_t n_rows, const KernelTable& k);
  void shift_windows(int64_t kda_layer, int64_t n_rows);

  KdaShape kda_;
  PagePool* pages_;
  int64_t log_rows_max_;
  FloatBuffer committed_;  // [kda layers, layer_floats]
  FloatBuffer spare_;      // same
  FloatBuffer log_;        // [kda layers, log_rows_max, log_row_floats]
  std::vector<int32_t> page_table_;
  int64_t length_ = 0;
  int64_t n_tentative_ = 0;
  int64_t mark_length_ = -1;
};

// Bytes of one State without its pages.
uint64_t state_bytes(const Config& config, int64_t log_rows_max);
// Bytes of the pages of `positions` positions.
uint64_t page_bytes(const Config& config, int64_t positions);

}  // namespace sluice
