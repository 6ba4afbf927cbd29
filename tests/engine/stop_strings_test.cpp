// Streamed text is cut before the first stop string, however it was cut into pieces.
#include "engine/stop_strings.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(StopMatcher, WithoutStopsTextPassesAtOnce) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.feed("abc"), "abc");
  EXPECT_EQ(matcher.flush(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, CutsBeforeTheStopHoweverTheTextArrives) {
  const std::string text = "one\n\n\ntwo END three";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    StopMatcher matcher({"END", "two X"});
    std::string out;
    for (size_t at = 0; at < text.size(); at += piece) out += matcher.feed(text.substr(at, piece));
    EXPECT_EQ(out + matcher.flush(), "one\n\n\ntwo ") << piece;
    EXPECT_TRUE(matcher.stopped());
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBeginAStop) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.feed("xaa"), "x");
  EXPECT_EQ(matcher.feed("a"), "a");  // "aa" may still become "aab"
  EXPECT_EQ(matcher.feed("c"), "aac");
  EXPECT_EQ(matcher.feed("a"), "");
  EXPECT_EQ(matcher.flush(), "a");
}

TEST(StopMatcher, TheEarliestOfSeveralStopsWins) {
  StopMatcher matcher({"three", "two"});
  EXPECT_EQ(matcher.feed("one two three"), "one ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.feed("more"), "");
}

}  // namespace
}  // namespace sluice
