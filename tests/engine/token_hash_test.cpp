// The chain of hashes that names a prefix, against contracts 4 written out.
#include "engine/token_hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace sluice {
namespace {

constexpr Hash128 kStart = {.low = 3, .high = 5};

std::vector<TokenId> counted(int64_t n) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<TokenId>(i * 77 % 4096));
  return tokens;
}

// h' = XXH3-128(h || ids as u32), 64 ids at a time.
Hash128 written_out(const std::vector<TokenId>& tokens) {
  Hash128 hash = kStart;
  for (size_t begin = 0; begin < tokens.size(); begin += 64) {
    const size_t n = std::min<size_t>(64, tokens.size() - begin);
    std::vector<std::byte> bytes(16 + n * 4);
    std::memcpy(bytes.data(), &hash.low, 8);
    std::memcpy(bytes.data() + 8, &hash.high, 8);
    std::memcpy(bytes.data() + 16, tokens.data() + begin, n * 4);
    hash = xxh3_128(bytes);
  }
  return hash;
}

TEST(TokenHash, IsTheChainOverBlocksOf64) {
  for (const int64_t n : {0, 1, 63, 64, 65, 127, 128, 129, 1000}) {
    const auto tokens = counted(n);
    TokenHash hash(kStart);
    hash.add(tokens);
    EXPECT_EQ(hash.value(), written_out(tokens)) << n;
  }
}

TEST(TokenHash, PiecesOfAnySizeGiveTheHashOfTheWhole) {
  const auto tokens = counted(300);
  for (const size_t step : {1u, 7u, 63u, 64u, 65u, 200u}) {
    TokenHash hash(kStart);
    for (size_t at = 0; at < tokens.size(); at += step) {
      hash.add(std::span(tokens).subspan(at, std::min(step, tokens.size() - at)));
    }
    EXPECT_EQ(hash.value(), written_out(tokens)) << step;
  }
}

TEST(TokenHash, EveryPrefixHasANameOfItsOwn) {
  const auto tokens = counted(200);
  std::set<std::string> names;
  TokenHash hash(kStart);
  names.insert(hash_digits(hash.value()));
  for (const TokenId& token : tokens) {
    hash.add({&token, 1});
    names.insert(hash_digits(hash.value()));
  }
  EXPECT_EQ(names.size(), 201u);
}

TEST(TokenHash, DigitsBeginWithTheHighHalf) {
  EXPECT_EQ(hash_digits({.low = 0xabc, .high = 0x12}), "00000000000000120000000000000abc");
}

}  // namespace
}  // namespace sluice
