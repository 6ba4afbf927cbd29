// The store's one way to fetch bytes: a direct read that is tried twice. Pure function;
// thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "io/file.h"

namespace sluice {

// File::read_direct, once more when it fails: a drive may recover from a read error by itself.
// The second error is returned as it is; it names file and offset.
Result<std::span<const std::byte>> read_retry(const File& file, uint64_t offset, uint64_t bytes,
                                              std::span<std::byte> slot,
                                              std::atomic<uint64_t>& bytes_read);

}  // namespace sluice
