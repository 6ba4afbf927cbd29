// Gathers the pieces of every routed expert and checks that each expert is one contiguous record of
// the same layout. One owner; lives while a checkpoint opens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/checkpoint.h"
#include "format/tensor_names.h"

namespace sluice {

class ExpertBinder {
 public:
  // `config` outlives the binder.
  ExpertBinder(const Config& config, std::string prefix);

  // Takes the tensor `name` of file number `file_index`.
  Status add(const ExpertName& parsed, const File& file, int32_t file_index, std::string_view name,
             const TensorInfo& info);

  struct Bound {
    ExpertLayout layout;
    std::vector<ExpertRef> experts;  // [n_layers * n_experts]
    int64_t n_bound = 0;
  };
  // After all tensors: kCorrupt names the first missing piece or the first odd expert.
  Result<Bound> finish() const;

 private:
  struct Pieces {
    int32_t file = -1;
    uint8_t seen = 0;  // bit p: piece p
    std::array<uint64_t, kExpertPieces> offset{};
  };
  struct Shape {
    int64_t rows, cols;  // as the file stores the piece
  };

  Shape stored_shape(ExpertPiece piece) const;
  uint64_t piece_bytes(ExpertPiece piece) const;
  bool is_piece_used(size_t piece) const;
  Status set_format(bool packed, const File& file, std::string_view name);
  Status check_complete(ExpertKey key, const Pieces& pieces) const;
  Result<ExpertLayout> make_layout(ExpertKey key, const Pieces& pieces) const;
  uint64_t begin(const Pieces& pieces) const;
  std::string full_name(ExpertKey key, ExpertPiece piece) const;

  const Config& config_;
  std::string prefix_;
  std::optional<bool> packed_;               // by the first piece; all others must agree
  std::vector<std::vector<Pieces>> layers_;  // [n_layers][n_experts], empty until a piece is seen
};

}  // namespace sluice
