// Weights out of nothing: one deterministic function (tensor name, byte offset, seed) -> bytes with
// the statistics of Kimi K3, so that true sizes can be run without the release. The definition is
// docs/FORMAT.md 2.2; tools/reference/generated.py is the same function in numpy. Made for tests
// and measurements: the text of such a model means nothing. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "format/safetensors.h"

namespace sluice {

// Bytes from one seed are the same as long as this is.
constexpr uint32_t kGeneratedVersion = 1;

// One tensor, ready to be filled; a small value that borrows from its GeneratedWeights.
struct GeneratedTensor {
  enum class Kind : uint8_t {
    kBlocks,     // pieces of a table, each from a place that its number in the tensor chooses
    kRows,       // the same by rows, with pieces that all rows share (the embeddings)
    kElements,   // a formula of each element's number (norms and the small fp32 tensors)
    kConstants,  // fp32 scales of an int8 matrix: one value
  };
  Kind kind = Kind::kBlocks;
  bool is_f32 = false;       // kElements: else bf16
  bool cubed = false;        // kElements: small values are frequent, large ones rare
  uint32_t place_mask = 0;   // places of the table, less one
  uint32_t block_bytes = 0;  // of a piece
  uint32_t place_bytes = 0;  // between places
  const std::byte* table = nullptr;
  uint64_t key = 0;
  uint64_t row_bytes = 0;               // kRows
  uint64_t n_values = 0;                // kElements: those after are zero (A_log's padding)
  float base = 0.0f, amplitude = 0.0f;  // kElements; kConstants: base
  friend bool operator==(const GeneratedTensor&, const GeneratedTensor&) = default;
};

class GeneratedWeights {
 public:
  explicit GeneratedWeights(uint64_t seed);
  ~GeneratedWeights();

  // The tensor of this full name, as it lies in a shard. Dtypes BF16, F32 and U8 (MXFP4's codes and
  // scales); kUnsupported names the tensor otherwise.
  Result<GeneratedTensor> tensor(std::string_view name, Dtype dtype,
                                 std::span<const int64_t> shape) const;

  // The int8 form of a bf16 matrix of that name, exactly as `sluice convert` makes it: codes, and
  // the one scale that all rows have. kUnsupported unless its columns are a multiple of 64: only
  // then has every row a largest value.
  struct Int8 {
    GeneratedTensor codes, scales;
  };
  Result<Int8> int8(std::string_view name, std::span<const int64_t> shape) const;

  // Bytes [offset, offset + out.size()) of the tensor. The table pieces cost little more than a
  // copy of memory.
  static void fill(const GeneratedTensor& tensor, uint64_t offset, std::span<std::byte> out);

  uint64_t seed() const { return seed_; }

 private:
  // Normal values of one standard deviation, as bf16 and as int8 codes.
  struct Normal {
    std::vector<std::byte> bf16, codes;
    float scale = 0.0f;  // of the codes
  };
  const Normal& normal(int32_t half_octaves) const;
  const std::vector<std::byte>& codes_table() const;
  const std::vector<std::byte>& scales_table(int32_t byte) const;

  const uint64_t seed_;
  mutable Mutex mutex_;
  // Made when first asked for; never changed or dropped afterwards.
  mutable std::array<std::unique_ptr<Normal>, 64> normals_ GUARDED_BY(mutex_);
  mutable std::unique_ptr<std::vector<std::byte>> codes_ GUARDED_BY(mutex_);
  mutable std::array<std::unique_ptr<std::vector<std::byte>>, 128> scales_ GUARDED_BY(mutex_);
};

}  // namespace sluice
