// Writes one tensor of a pack: read from the snapshot in pieces, quantised over the threads or
// copied, hashed on the way. One owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "base/xxh3.h"
#include "format/checkpoint.h"
#include "format/pack_layout.h"
#include "io/part_file.h"

namespace sluice {

class PackTensorWriter {
 public:
  // Everything is borrowed. Takes memory for one piece, whatever the size of the tensors.
  PackTensorWriter(const Checkpoint& checkpoint, const PackLayout& layout, PartFile& part,
                   ThreadPool& pool, std::atomic<uint64_t>& bytes_read);

  // Told after each piece how many bytes of the pack it made; an error ends the writing.
  using OnBytes = std::function<Status(uint64_t bytes)>;
  // Writes the tensor of group `group` and sets its checksum.
  Status write(size_t group, PackTensor& tensor, const OnBytes& on_bytes);

 private:
  Status copy(const TensorRef& source, const PackTensor& tensor, Xxh3& hash,
              const OnBytes& on_bytes);
  Status quantise(const TensorRef& source, const PackTensor& tensor, Xxh3& hash,
                  const OnBytes& on_bytes);
  // Codes and scales of `bf16`, whole rows of which `first_row` is the first.
  Status quantise_rows(std::span<const std::byte> bf16, const TensorRef& source,
                       const PackTensor& tensor, int64_t first_row);

  const Checkpoint& checkpoint_;
  PartFile& part_;
  ThreadPool& pool_;
  std::atomic<uint64_t>& bytes_read_;
  uint64_t piece_bytes_;
  AlignedBuffer in_;           // a piece as stored
  std::vector<int8_t> codes_;  // of a piece
  std::vector<float> scales_;  // of the whole tensor
};

}  // namespace sluice
