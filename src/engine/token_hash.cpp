#include "engine/token_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace sluice {

static_assert(std::endian::native == std::endian::little);  // ids are hashed as they lie

void TokenHash::add(std::span<const TokenId> tokens) {
  while (!tokens.empty()) {
    const auto room = static_cast<size_t>(kHashBlockTokens) - block_.size();
    const auto taken = tokens.first(std::min(room, tokens.size()));
    block_.insert(block_.end(), taken.begin(), taken.end());
    tokens = tokens.subspan(taken.size());
    if (std::ssize(block_) < kHashBlockTokens) return;
    chain_ = next();
    block_.clear();
  }
}

Hash128 TokenHash::value() const { return block_.empty() ? chain_ : next(); }

Hash128 TokenHash::next() const {
  static_assert(sizeof(TokenId) == sizeof(uint32_t));
  constexpr size_t kChainBytes = 2 * sizeof(uint64_t);
  std::array<std::byte, kChainBytes + kHashBlockTokens * sizeof(uint32_t)> bytes;
  const size_t block_bytes = block_.size() * sizeof(uint32_t);
  std::memcpy(bytes.data(), &chain_.low, sizeof(uint64_t));
  std::memcpy(bytes.data() + sizeof(uint64_t), &chain_.high, sizeof(uint64_t));
  std::memcpy(bytes.data() + kChainBytes, block_.data(), block_bytes);
  return xxh3_128(std::span(bytes).first(kChainBytes + block_bytes));
}

std::string hash_digits(const Hash128& hash) {
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return text.data();
}

}  // namespace sluice
