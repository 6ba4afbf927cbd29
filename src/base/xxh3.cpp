#include "base/xxh3.h"

#include <xxhash.h>

#include "base/error.h"

namespace sluice {

uint64_t xxh3_64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hash128 xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.low = hash.low64, .high = hash.high64};
}

struct Xxh3::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {
  CHECK(state_->xxh != nullptr && XXH3_64bits_reset(state_->xxh) == XXH_OK);
}

Xxh3::~Xxh3() = default;

void Xxh3::update(std::span<const std::byte> bytes) {
  CHECK(XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

uint64_t Xxh3::digest() const { return XXH3_64bits_digest(state_->xxh); }

}  // namespace sluice
