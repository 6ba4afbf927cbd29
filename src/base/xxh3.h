// The one wrapper of xxHash: XXH3-64 (seed 0), the checksum of what we write, and XXH3-128, which
// names it. Detects damage, not malice. Values; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice {

uint64_t xxh3_64(std::span<const std::byte> bytes);

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 xxh3_128(std::span<const std::byte> bytes);

// XXH3-64 over bytes that come in pieces.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
