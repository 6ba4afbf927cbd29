#include "text/bpe.h"

#include <algorithm>

#include "text/fixture.h"

namespace sluice {
namespace {

const RankTable& tiny_ranks() {
  static const RankTable ranks = [] {
    auto parsed =
        RankTable::parse(read_source_file("models/tiny-k3/tiktoken.model"), "tiktoken.model");
    CHECK(parsed.ok());
    return std::move(parsed).value();
  }();
  return ranks;
}

// The definition, word for word: quadratic.
std::vector<TokenId> merged_plainly(std::string_view piece) {
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  while (true) {
    TokenId lowest = RankTable::kNone;
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const TokenId id = tiny_ranks().find(parts[i] + parts[i + 1]);
      if (id != RankTable::kNone && (lowest == RankTable::kNone || id < lowest)) {
        lowest = id;
        at = i;
      }
    }
    if (lowest == RankTable::kNone) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& part : parts) ids.push_back(tiny_ranks().find(part));
  return ids;
}

std::vector<TokenId> merged(std::string_view piece) {
  std::vector<TokenId> ids;
  append_bpe(tiny_ranks(), piece, ids);
  return ids;
}

TEST(Bpe, EveryRankIsFoundByItsBytes) {
  for (TokenId id = 0; id < tiny_ranks().size(); ++id) {
    ASSERT_EQ(tiny_ranks().find(tiny_ranks().bytes(id)), id);
    ASSERT_EQ(merged(tiny_ranks().bytes(id)), std::vector<TokenId>{id});
  }
  EXPECT_EQ(tiny_ranks().find("no such word"), RankTable::kNone);
  EXPECT_EQ(tiny_ranks().find(std::string(1000, 'a')), RankTable::kNone);
}

// Lengths on both sides of the change from scan to heap, over letters that merge often.
TEST(Bpe, AgreesWithThePlainDefinition) {
  uint32_t state = 7;
  const auto random = [&](uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
  };
  for (const size_t length : {1u, 2u, 3u, 5u, 8u, 20u, 63u, 64u, 65u, 66u, 100u, 300u}) {
    for (const std::string_view letters : {"aeint rsh", "the", "a", "01", "\xD0\xBF\xD1\x80"}) {
      for (int round = 0; round < 30; ++round) {
        std::string piece;
        for (size_t i = 0; i < length; ++i) {
          piece.push_back(letters[random(static_cast<uint32_t>(letters.size()))]);
        }
        ASSERT_EQ(merged(piece), merged_plainly(piece)) << piece;
      }
    }
  }
}

TEST(Bpe, APieceOfAMegabyteIsMerged) {
  const std::vector<TokenId> ids = merged(std::string(size_t{1} << 20, 'a'));
  size_t bytes = 0;
  for (const TokenId id : ids) bytes += tiny_ranks().bytes(id).size();
  EXPECT_EQ(bytes, size_t{1} << 20);
}

}  // namespace
}  // namespace sluice
