// Large memory is aligned and has one owner.
#include "base/aligned_buffer.h"

#include <utility>

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(AlignedBuffer, BeginsOnAPageAndKeepsItsSize) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{4097}}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kPageBytes, 0u);
    EXPECT_EQ(buffer.size(), bytes);
  }
}

TEST(AlignedBuffer, MovingLeavesNothingBehind) {
  AlignedBuffer first(100);
  std::byte* const data = first.data();
  AlignedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);
  AlignedBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 100u);
}

TEST(AlignedBuffer, FloatsStartAtZero) {
  const FloatBuffer floats(1000);
  for (const float value : floats.span()) ASSERT_EQ(value, 0.0f);
  EXPECT_EQ(floats.bytes(), 4000u);
}

TEST(AlignedBuffer, RoundingKeepsMultiples) {
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_up(4097, 4096), 8192u);
  EXPECT_EQ(round_down(4095, 4096), 0u);
  EXPECT_EQ(round_down(8192, 4096), 8192u);
}

}  // namespace
}  // namespace sluice
