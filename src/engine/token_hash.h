// The name of a token prefix (contracts 4): a chain of XXH3-128 over blocks of 64 ids, so that the
// hashes of all prefixes come out on the way. Detects damage and tells prefixes apart; it does not
// resist an attacker. Values; one owner.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/xxh3.h"

namespace sluice {

constexpr int64_t kHashBlockTokens = 64;

class TokenHash {
 public:
  // `start` is the hash of no tokens.
  explicit TokenHash(Hash128 start) : chain_(start) { block_.reserve(kHashBlockTokens); }

  void add(std::span<const TokenId> tokens);
  // Of all tokens so far. After a whole block it is the chain itself.
  Hash128 value() const;

 private:
  Hash128 next() const;  // chain and block hashed

  Hash128 chain_;               // of the whole blocks
  std::vector<TokenId> block_;  // fewer than kHashBlockTokens
};

// 32 hex digits, the high half first.
std::string hash_digits(const Hash128& hash);

}  // namespace sluice
