#include "format/expert_binder.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr int64_t kMxfp4Block = 32;  // columns that share a scale (spec 3)

bool is_scale(ExpertPiece piece) {
  return piece == ExpertPiece::kW1Scale || piece == ExpertPiece::kW2Scale ||
         piece == ExpertPiece::kW3Scale;
}

std::string expert_text(ExpertKey key) {
  return "expert " + std::to_string(key.expert.v) + " of layer " + std::to_string(key.layer.v);
}

}  // namespace

ExpertBinder::ExpertBinder(const Config& config, std::string prefix)
    : config_(config), prefix_(std::move(prefix)), layers_(static_cast<size_t>(config.n_layers)) {}

Status ExpertBinder::add(const ExpertName& parsed, const File& file, int32_t file_index,
                         std::string_view name, const TensorInfo& info) {
  const auto refuse = [&](const std::string& text, Code code = Code::kCorrupt) {
    return Error{code, file.path() + ": tensor \"" + std::string(name) + "\" " + text};
  };
  if (!config_.is_moe(parsed.layer) || parsed.expert.v >= config_.moe.n_experts) {
    return refuse("is a routed expert that config.json does not have");
  }
  TRY_OK(set_format(parsed.packed, file, name));
  const Shape shape = stored_shape(parsed.piece);
  const Dtype dtype = *packed_ ? Dtype::kU8 : Dtype::kBf16;
  if (info.dtype != dtype) {
    return refuse(std::string("is ") + dtype_name(info.dtype) + ", expected " + dtype_name(dtype));
  }
  const bool is_shape_right =
      info.shape.size() == 2 && info.shape[0] == shape.rows && info.shape[1] == shape.cols;
  if (!is_shape_right) {
    return refuse("has shape " + shape_text(info.shape) + ", but config.json implies " +
                  shape_text({shape.rows, shape.cols}));
  }
  auto& layer = layers_[static_cast<size_t>(parsed.layer.v)];
  if (layer.empty()) layer.resize(static_cast<size_t>(config_.moe.n_experts));
  Pieces& pieces = layer[static_cast<size_t>(parsed.expert.v)];
  const auto piece = static_cast<size_t>(parsed.piece);
  if (pieces.seen >> piece & 1) return refuse("appears in two shards");
  if (pieces.seen != 0 && pieces.file != file_index) {
    return refuse("lies in another shard than the rest of its expert: experts must be contiguous",
                  Code::kUnsupported);
  }
  pieces.file = file_index;
  pieces.seen = static_cast<uint8_t>(pieces.seen | 1u << piece);
  pieces.offset[piece] = info.offset;
  return Ok{};
}

Result<ExpertBinder::Bound> ExpertBinder::finish() const {
  Bound bound;
  if (config_.moe.n_experts == 0) return bound;
  const auto n_experts = static_cast<int32_t>(config_.moe.n_experts);
  for (int32_t l = 0; l < config_.n_layers; ++l) {
    if (!config_.is_moe(LayerId{l})) continue;
    const auto& layer = layers_[static_cast<size_t>(l)];
    for (int32_t e = 0; e < n_experts; ++e) {
      const ExpertKey key{LayerId{l}, ExpertId{e}};
      TRY_OK(check_complete(key, layer.empty() ? Pieces{} : layer[static_cast<size_t>(e)]));
    }
  }
  bound.experts.resize(static_cast<size_t>(config_.n_layers * config_.moe.n_experts));
  for (int32_t l = 0; l < config_.n_layers; ++l) {
    if (!config_.is_moe(LayerId{l})) continue;
    for (int32_t e = 0; e < n_experts; ++e) {
      const ExpertKey key{LayerId{l}, ExpertId{e}};
      const Pieces& pieces = layers_[static_cast<size_t>(l)][static_cast<size_t>(e)];
      TRY(const ExpertLayout layout, make_layout(key, pieces));
      if (bound.n_bound == 0) bound.layout = layout;
      if (layout.piece_offset != bound.layout.piece_offset) {
        return Error{Code::kUnsupported, expert_text(key) +
                                             " holds its pieces in another order than the first "
                                             "expert: one layout for all is expected"};
      }
      bound.experts[static_cast<size_t>(l * config_.moe.n_experts + e)] =
          ExpertRef{pieces.file, begin(pieces)};
      ++bound.n_bound;
    }
  }
  return bound;
}

ExpertBinder::Shape ExpertBinder::stored_shape(ExpertPiece piece) const {
  const bool is_down = piece == ExpertPiece::kW2 || piece == ExpertPiece::kW2Scale;
  const int64_t rows = is_down ? config_.expert_width() : config_.moe.intermediate_size;
  const int64_t cols = is_down ? config_.moe.intermediate_size : config_.expert_width();
  if (!*packed_) return {rows, cols};
  return {rows, is_scale(piece) ? cols / kMxfp4Block : cols / 2};
}

uint64_t ExpertBinder::piece_bytes(ExpertPiece piece) const {
  const Shape shape = stored_shape(piece);
  const uint64_t element = dtype_bytes(*packed_ ? Dtype::kU8 : Dtype::kBf16);
  return static_cast<uint64_t>(shape.rows * shape.cols) * element;
}

bool ExpertBinder::is_piece_used(size_t piece) const {
  return *packed_ || !is_scale(static_cast<ExpertPiece>(piece));
}

Status ExpertBinder::set_format(bool packed, const File& file, std::string_view name) {
  if (packed_ && *packed_ != packed) {
    return Error{Code::kCorrupt, file.path() + ": tensor \"" + std::string(name) + "\" is " +
                                     (packed ? "MXFP4" : "BF16") + ", but experts before it are " +
                                     (packed ? "BF16" : "MXFP4")};
  }
  packed_ = packed;
  if (!packed) return Ok{};
  const bool fits =
      config_.expert_width() % kMxfp4Block == 0 && config_.moe.intermediate_size % kMxfp4Block == 0;
  if (fits) return Ok{};
  return Error{
      Code::kInvalid,
      "config.json: " +
          std::string(config_.moe.latent_size ? "routed_expert_hidden_size" : "hidden_size") + " " +
          std::to_string(config_.expert_width()) + " and moe_intermediate_size " +
          std::to_string(config_.moe.intermediate_size) +
          " must be multiples of 32, as experts are MXFP4"};
}

Status ExpertBinder::check_complete(ExpertKey key, const Pieces& pieces) const {
  for (size_t p = 0; p < kExpertPieces; ++p) {
    const auto piece = static_cast<ExpertPiece>(p);
    const bool is_needed = packed_ ? is_piece_used(p) : piece == ExpertPiece::kW1;
    if (!is_needed || (pieces.seen >> p & 1)) continue;
    return Error{Code::kCorrupt, "tensor \"" + full_name(key, piece) +
                                     "\" is in no shard, but config.json implies it: download the "
                                     "checkpoint again"};
  }
  return Ok{};
}

// The layout of one complete expert.
Result<ExpertLayout> ExpertBinder::make_layout(ExpertKey key, const Pieces& pieces) const {
  ExpertLayout layout;
  layout.format = *packed_ ? ExpertFormat::kMxfp4 : ExpertFormat::kBf16;
  const uint64_t first = begin(pieces);
  uint64_t end = first;
  for (size_t p = 0; p < kExpertPieces; ++p) {
    if (!is_piece_used(p)) continue;
    layout.piece_offset[p] = pieces.offset[p] - first;
    layout.piece_bytes[p] = piece_bytes(static_cast<ExpertPiece>(p));
    layout.record_bytes += layout.piece_bytes[p];
    end = std::max(end, pieces.offset[p] + layout.piece_bytes[p]);
  }
  // Ranges of a file never overlap, so that equal sums leave no hole.
  if (end - first == layout.record_bytes) return layout;
  return Error{Code::kCorrupt, expert_text(key) + " is not contiguous: tensor \"" +
                                   full_name(key, ExpertPiece::kW1) + "\" and its siblings span " +
                                   std::to_string(end - first) + " bytes for " +
                                   std::to_string(layout.record_bytes)};
}

uint64_t ExpertBinder::begin(const Pieces& pieces) const {
  uint64_t least = UINT64_MAX;
  for (size_t p = 0; p < kExpertPieces; ++p) {
    if (is_piece_used(p)) least = std::min(least, pieces.offset[p]);
  }
  return least;
}

std::string ExpertBinder::full_name(ExpertKey key, ExpertPiece piece) const {
  return prefix_ + expert_piece_name(key, piece, packed_.value_or(true));
}

}  // namespace sluice
