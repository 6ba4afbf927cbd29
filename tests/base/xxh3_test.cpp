// XXH3-64 against the published value of the empty input, and pieces against the whole.
#include "base/xxh3.h"

#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Xxh3, TheEmptyInputHasThePublishedHash) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(Xxh3().digest(), 0x2d06800538d394c2u);
  EXPECT_EQ(xxh3_128({}), (Hash128{.low = 0x6001c324468d497fu, .high = 0x99aa06d3014798d8u}));
}

TEST(Xxh3, PiecesOfAnySizeGiveTheHashOfTheWhole) {
  std::vector<std::byte> bytes(10'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3);
  for (const size_t step : {1u, 7u, 64u, 1023u, 4096u}) {
    Xxh3 hash;
    for (size_t at = 0; at < bytes.size(); at += step) {
      hash.update(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
    }
    EXPECT_EQ(hash.digest(), xxh3_64(bytes)) << step;
  }
}

TEST(Xxh3, EveryBitCounts) {
  std::vector<std::byte> bytes(300);
  const uint64_t whole = xxh3_64(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{16};
    EXPECT_NE(xxh3_64(bytes), whole) << i;
    bytes[i] ^= std::byte{16};
  }
}

}  // namespace
}  // namespace sluice
