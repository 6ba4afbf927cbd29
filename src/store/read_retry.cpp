#include "store/read_retry.h"

namespace sluice {

Result<std::span<const std::byte>> read_retry(const File& file, uint64_t offset, uint64_t bytes,
                                              std::span<std::byte> slot,
                                              std::atomic<uint64_t>& bytes_read) {
  auto first = file.read_direct(offset, bytes, slot, bytes_read);
  if (first.ok()) return first;
  return file.read_direct(offset, bytes, slot, bytes_read);
}

}  // namespace sluice
