// State, pages and batches: the rules around the arithmetic.
#include "model/pass.h"
#include "model/tiny_model.h"

namespace sluice::testing {
namespace {

TEST(Pages, AFullPoolRefusesAndGivesBackWhatItTook) {
  TinyModel tiny;
  PagePool pool(PageShape(tiny.checkpoint().config()), 2 * kPagePositions);
  State a(tiny.model().config(), pool, kTentativeRowsMax);
  State b(tiny.model().config(), pool, kTentativeRowsMax);
  ASSERT_TRUE(a.reserve(kPagePositions).ok());
  const Status refused = b.reserve(2 * kPagePositions);  // takes the last page, then finds none
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_NE(refused.error().what.find("--context"), std::string::npos);
  EXPECT_TRUE(b.reserve(kPagePositions).ok());
}

TEST(State, AContextThatIsFullFailsThatPassAloneAndLeavesTheStateUsable) {
  TinyModel tiny({.context = kPagePositions});
  const auto tokens = some_tokens(kPagePositions + 1);
  auto state = tiny.new_state();
  tiny.keep(*state, {tokens.begin(), tokens.end() - 2}, 0);
  const Status refused = tiny.model().forward(
      {{{state.get(), {tokens.end() - 2, tokens.end()}, RowFate::kKeep, 0}}}, {}, nullptr, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kBudget);
  EXPECT_EQ(state->length(), kPagePositions - 1);
  const Logits last = tiny.keep(*state, {tokens[kPagePositions - 1]}, 1);

  TinyModel other;
  auto whole = other.new_state();
  EXPECT_TRUE(same_bits(last, other.keep(*whole, {tokens.begin(), tokens.end() - 1}, 1)));
}

TEST(State, ResetForgetsTheSequenceAndReturnsItsPages) {
  TinyModel tiny({.context = kPagePositions});
  const auto tokens = some_tokens(40);
  auto state = tiny.new_state();
  const Logits first = tiny.keep(*state, tokens, 1);
  state->reset();
  EXPECT_EQ(state->length(), 0);
  auto other = tiny.new_state();
  EXPECT_TRUE(same_bits(first, tiny.keep(*other, tokens, 1)));  // the only page is free again
  other->reset();
  EXPECT_TRUE(same_bits(first, tiny.keep(*state, tokens, 1)));
}

TEST(State, AMarkIsTheStateToReturnToWhateverWasCommittedSince) {
  TinyModel tiny({.context = 2 * kPagePositions});
  const auto prompt = some_tokens(kPagePositions - 1);
  auto state = tiny.new_state();
  tiny.keep(*state, prompt, 0);
  state->mark();
  EXPECT_EQ(state->mark_length(), kPagePositions - 1);
  for (const TokenId token : {1, 2, 3}) {  // into the next page
    tiny.attempt(*state, {token});
    state->commit(1, tiny.model().compute());
  }
  for (int twice = 0; twice < 2; ++twice) {
    state->return_to_mark();
    EXPECT_EQ(state->length(), kPagePositions - 1);
    auto other = tiny.new_state();
    EXPECT_TRUE(other->reserve(kPagePositions).ok());  // the next page is free again
    tiny.attempt(*state, {9});
    state->commit(1, tiny.model().compute());
  }
  const Logits after = tiny.attempt(*state, {10, 11});
  TinyModel fresh;
  auto whole = fresh.new_state();
  fresh.keep(*whole, prompt, 0);
  fresh.keep(*whole, {9}, 0);
  EXPECT_TRUE(same_bits(after, fresh.keep(*whole, {10, 11}, 2)));
}

TEST(Batch, ATokenOutsideTheVocabularyIsNamedAndNothingIsComputed) {
  TinyModel tiny;
  auto state = tiny.new_state();
  for (const TokenId bad : {-1, 4096, 1 << 30}) {
    const Status refused =
        tiny.model().forward({{{state.get(), {5, bad}, RowFate::kKeep, 0}}}, {}, nullptr, nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_NE(refused.error().what.find(std::to_string(bad)), std::string::npos);
    EXPECT_EQ(state->length(), 0);
  }
}

TEST(Batch, APassBeyondThePlanIsRefused) {
  TinyModel rich;
  TinyModel tiny({.ram_bytes = rich.plan().floor_bytes});
  auto state = tiny.new_state();
  const int64_t too_many = tiny.model().rows_max() + 1;
  const Status refused = tiny.model().forward(
      {{{state.get(), some_tokens(too_many), RowFate::kKeep, 0}}}, {}, nullptr, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kBudget);
}

TEST(Tiles, TentativeRowsOfASequenceShareATileAndEveryRowHasOne) {
  TinyModel tiny;
  const Config& config = tiny.model().config();
  auto a = tiny.new_state();
  auto b = tiny.new_state();
  auto c = tiny.new_state();
  const Batch batch{{{a.get(), some_tokens(60), RowFate::kKeep, 0},
                     {b.get(), some_tokens(9), RowFate::kTentative, 0},
                     {c.get(), some_tokens(130), RowFate::kKeep, 0}}};
  Workspace workspace(config, 256, 1);
  Pass pass{.config = config,
            .compute = tiny.model().compute(),
            .workspace = workspace,
            .qkv_norm_eps = kQkvNormEps};
  cut_into_tiles(batch, nullptr, pass);
  EXPECT_EQ(pass.n_rows, 199);
  int64_t row = 0;
  for (const Tile& tile : pass.tiles) {
    EXPECT_EQ(tile.first_row, row);
    EXPECT_LE(tile.n_rows, kTileRows);
    for (const TilePart& part : pass.parts_of(tile)) {
      EXPECT_EQ(part.sequence->first_row + part.first, tile.first_row + part.tile_row);
      if (part.sequence->fate == RowFate::kTentative) {
        EXPECT_EQ(part.n_rows, part.sequence->n_rows);
      }
    }
    row += tile.n_rows;
  }
  EXPECT_EQ(row, pass.n_rows);
}

}  // namespace
}  // namespace sluice::testing
