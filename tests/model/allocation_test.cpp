// Counts heap allocations: after the first tokens a decode step takes none, whatever it reads.
#include "base/count_allocations.h"
#include "model/tiny_model.h"

namespace sluice::testing {
namespace {

// Allocations of `n` decode steps after two to warm up.
int64_t allocations_of_decoding(TinyModel& tiny, int64_t n) {
  auto state = tiny.new_state();
  tiny.keep(*state, some_tokens(20), 0);
  Logits logits(static_cast<size_t>(tiny.vocab()));
  Batch batch{{{state.get(), {7}, RowFate::kTentative, 1}}};
  int64_t before = 0;
  for (int64_t i = 0; i < n + 2; ++i) {
    if (i == 2) before = n_allocations;
    const Status status =
        tiny.model().forward(batch, {logits.data(), 1, tiny.vocab()}, nullptr, nullptr);
    EXPECT_TRUE(status.ok());
    state->commit(1, tiny.model().compute());
  }
  return n_allocations - before;
}

TEST(Allocations, AreCounted) {
  const int64_t before = n_allocations;
  delete new int(1);
  EXPECT_EQ(n_allocations - before, 1);
}

TEST(Allocations, DecodingWithEverythingInMemoryTakesNone) {
  TinyModel tiny({.threads = 2});
  EXPECT_EQ(allocations_of_decoding(tiny, 50), 0);
}

TEST(Allocations, DecodingAtTheFloorOfMemoryTakesNone) {
  TinyModel rich({.threads = 2});
  TinyModel tiny({.threads = 2, .ram_bytes = rich.plan().floor_bytes});
  EXPECT_EQ(allocations_of_decoding(tiny, 50), 0);
}

}  // namespace
}  // namespace sluice::testing
