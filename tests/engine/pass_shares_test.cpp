// Who gets how many rows of a pass.
#include "engine/pass_shares.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Rows = std::vector<int64_t>;

constexpr RowDemand kDecoding{.rows = 1, .decoding = true};
constexpr RowLimits kLimits{.rows_max = 100, .rows_with_decoding = 20, .logit_rows_max = 8};

RowDemand prompt(int64_t rows) { return {.rows = rows}; }

TEST(PassShares, EveryDecodingSequenceGetsItsRow) {
  const std::vector<RowDemand> demands = {kDecoding, prompt(500), kDecoding};
  EXPECT_EQ(share_rows(demands, kLimits), (Rows{1, 20, 1}));
}

TEST(PassShares, PromptsAloneTakeTheWholePass) {
  EXPECT_EQ(share_rows(std::vector{prompt(500)}, kLimits), Rows{100});
  EXPECT_EQ(share_rows(std::vector{prompt(30), prompt(40)}, kLimits), (Rows{30, 40}));
}

TEST(PassShares, AShortPromptDoesNotWaitForALongOne) {
  EXPECT_EQ(share_rows(std::vector{prompt(500), prompt(10)}, kLimits), (Rows{90, 10}));
}

TEST(PassShares, TheOldestGoesOnWhateverComesAfterIt) {
  const std::vector<RowDemand> demands = {prompt(500), prompt(40), prompt(50), prompt(45)};
  EXPECT_EQ(share_rows(demands, kLimits), (Rows{50, 40, 0, 10}));
}

TEST(PassShares, LogitsOfAllRowsAreBounded) {
  const RowDemand scored{.rows = 50, .decoding = false, .all_logits = true};
  // Of eight logit rows two belong to the others.
  EXPECT_EQ(share_rows(std::vector{scored, prompt(9), prompt(9)}, kLimits), (Rows{6, 9, 9}));
  EXPECT_EQ(share_rows(std::vector{scored, scored}, kLimits), (Rows{7, 1}));
}

TEST(PassShares, ADecodingPassWithLittleTimeStillTakesSomePrompt) {
  const RowLimits tight{.rows_max = 100, .rows_with_decoding = 1, .logit_rows_max = 8};
  EXPECT_EQ(share_rows(std::vector{kDecoding, prompt(7)}, tight), (Rows{1, 1}));
}

}  // namespace
}  // namespace sluice
