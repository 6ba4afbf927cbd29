#include "store/pack_tensor_writer.h"

#include <algorithm>
#include <span>
#include <string>

#include "format/quantise.h"
#include "io/file.h"
#include "store/read_retry.h"

namespace sluice {
namespace {

// Large enough that a drive and the threads are busy, small enough to stop within a moment.
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;

uint64_t row_bytes(const TensorRef& tensor) { return static_cast<uint64_t>(tensor.cols) * 2; }

// A piece holds at least one row of every matrix.
uint64_t choose_piece_bytes(const Checkpoint& checkpoint, const PackLayout& layout) {
  uint64_t bytes = kPieceBytes;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    for (const PackTensor& tensor : layout.groups[g].tensors) {
      bytes = std::max(bytes, row_bytes(pack_source(checkpoint, g, tensor.role)));
    }
  }
  return bytes;
}

}  // namespace

PackTensorWriter::PackTensorWriter(const Checkpoint& checkpoint, const PackLayout& layout,
                                   PartFile& part, ThreadPool& pool,
                                   std::atomic<uint64_t>& bytes_read)
    : checkpoint_(checkpoint),
      part_(part),
      pool_(pool),
      bytes_read_(bytes_read),
      piece_bytes_(choose_piece_bytes(checkpoint, layout)),
      in_(slot_bytes(piece_bytes_)) {}

Status PackTensorWriter::write(size_t group, PackTensor& tensor, const OnBytes& on_bytes) {
  const TensorRef& source = pack_source(checkpoint_, group, tensor.role);
  Xxh3 hash;
  TRY_OK(tensor.has_scales() ? quantise(source, tensor, hash, on_bytes)
                             : copy(source, tensor, hash, on_bytes));
  tensor.checksum = hash.digest();
  return Ok{};
}

Status PackTensorWriter::copy(const TensorRef& source, const PackTensor& tensor, Xxh3& hash,
                              const OnBytes& on_bytes) {
  const File& file = checkpoint_.file(source.file);
  for (uint64_t done = 0; done < tensor.bytes; done += piece_bytes_) {
    const uint64_t bytes = std::min(piece_bytes_, tensor.bytes - done);
    TRY(const auto piece, read_retry(file, source.offset + done, bytes, in_.bytes(), bytes_read_));
    hash.update(piece);
    TRY_OK(part_.write_at(tensor.offset + done, piece));
    TRY_OK(on_bytes(bytes));
  }
  return Ok{};
}

Status PackTensorWriter::quantise(const TensorRef& source, const PackTensor& tensor, Xxh3& hash,
                                  const OnBytes& on_bytes) {
  CHECK(source.dtype == Dtype::kBf16);
  const File& file = checkpoint_.file(source.file);
  const auto rows_max = static_cast<int64_t>(piece_bytes_ / row_bytes(source));
  codes_.resize(static_cast<size_t>(std::min(rows_max, tensor.rows) * tensor.cols));
  scales_.resize(static_cast<size_t>(tensor.rows));
  for (int64_t row = 0; row < tensor.rows; row += rows_max) {
    const int64_t n_rows = std::min(rows_max, tensor.rows - row);
    TRY(const auto piece,
        read_retry(file, source.offset + static_cast<uint64_t>(row) * row_bytes(source),
                   static_cast<uint64_t>(n_rows) * row_bytes(source), in_.bytes(), bytes_read_));
    TRY_OK(quantise_rows(piece, source, tensor, row));
    const auto codes =
        std::as_bytes(std::span(codes_).first(static_cast<size_t>(n_rows * tensor.cols)));
    hash.update(codes);
    TRY_OK(part_.write_at(tensor.offset + static_cast<uint64_t>(row * tensor.cols), codes));
    TRY_OK(on_bytes(codes.size()));
  }
  const auto scales = std::as_bytes(std::span(scales_));
  hash.update(scales);
  TRY_OK(part_.write_at(tensor.offset + tensor.scales_at(), scales));
  return on_bytes(scales.size());
}

Status PackTensorWriter::quantise_rows(std::span<const std::byte> bf16, const TensorRef& source,
                                       const PackTensor& tensor, int64_t first_row) {
  const uint64_t stride = row_bytes(source);
  const auto n_rows = static_cast<int64_t>(bf16.size() / stride);
  std::atomic<int64_t> bad_row = n_rows;  // the first row that is not finite
  pool_.run([&](int worker, int workers) {
    const Slice mine = slice(n_rows, worker, workers);
    for (int64_t row = mine.begin; row < mine.end; ++row) {
      const auto codes = std::span(codes_).subspan(static_cast<size_t>(row * tensor.cols),
                                                   static_cast<size_t>(tensor.cols));
      const auto scale =
          quantise_row(bf16.subspan(static_cast<uint64_t>(row) * stride, stride), codes);
      if (scale) {
        scales_[static_cast<size_t>(first_row + row)] = *scale;
        continue;
      }
      int64_t lowest = bad_row;
      while (row < lowest && !bad_row.compare_exchange_weak(lowest, row)) continue;
    }
  });
  if (bad_row == n_rows) return Ok{};
  return Error{Code::kCorrupt, checkpoint_.file(source.file).path() + ": tensor \"" + tensor.name +
                                   "\" has a weight that is not finite in row " +
                                   std::to_string(first_row + bad_row) +
                                   ": download the file again"};
}

}  // namespace sluice
