// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011): the draw of
// any position is computed alone, so it cannot depend on how many draws were made before it. Pure
// functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Ten rounds over `counter` with the round keys that start at `key`.
constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;  // of the paper
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// u in [0, 1) of the token at `position` (its index in the sequence, prompt included) of choice
// `choice`: key = (seed low, seed high), counter = (position low, position high, choice low, choice
// high); of the four words w, u = floor((w0 * 2^32 + w1) / 2^11) / 2^53, exact in a double.
constexpr double philox_uniform(uint64_t seed, uint64_t position, uint64_t choice) {
  const PhiloxCounter words =
      philox4x32_10({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                     static_cast<uint32_t>(choice), static_cast<uint32_t>(choice >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace sluice
