#include "model/embedding.h"

#include "base/bf16.h"

namespace sluice {

Status embed(const Checkpoint& checkpoint, const Batch& batch, const Pass& pass,
             std::atomic<uint64_t>& bytes_read) {
  const TensorRef& table = checkpoint.global(Role::kEmbedTokens);
  const auto hidden = static_cast<size_t>(pass.config.hidden_size);
  const Rows residual = pass.workspace.residual(pass.n_rows);
  // A row of bf16 is read into the upper half of its fp32 row, then widened upwards in place.
  int64_t row = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    for (const TokenId token : sequence.tokens) {
      float* out = residual.row(row++);
      std::byte* raw = reinterpret_cast<std::byte*>(out) + hidden * 2;
      const uint64_t offset = table.offset + static_cast<uint64_t>(token) * hidden * 2;
      TRY_OK(checkpoint.file(table.file).read_at(offset, {raw, hidden * 2}));
      bytes_read += hidden * 2;
      for (size_t i = 0; i < hidden; ++i) {
        out[i] = bf16_at(raw, static_cast<int64_t>(i));
      }
    }
  }
  return Ok{};
}

}  // namespace sluice
