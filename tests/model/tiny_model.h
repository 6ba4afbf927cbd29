// tiny-k3, or another checkpoint, opened for tests: a model under a chosen table, thread count and
// memory limit, and short ways to run passes and keep their logits.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "format/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/model.h"

namespace sluice::testing {

inline std::filesystem::path tiny_k3() { return SLUICE_SOURCE_DIR "/models/tiny-k3"; }

using Logits = std::vector<float>;  // rows of vocab_size

inline bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct TinyOptions {
  std::filesystem::path model = tiny_k3();
  std::string isa = "auto";
  int threads = 1;
  uint64_t ram_bytes = 0;  // 0: enough for everything
  int64_t n_sequences = 4;
  int64_t context = 4096;
  const PackFile* pack = nullptr;  // the int8 spine
};

// A value or a failed test.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().what;
    std::abort();
  }
  return std::move(result).value();
}

class TinyModel {
 public:
  explicit TinyModel(const TinyOptions& options = {})
      : checkpoint_(must(Checkpoint::open(options.model, Direct::kAuto))),
        plan_(must(make_memory_plan(input(options)))),
        pages_(PageShape(checkpoint_.config()), options.context),
        model_(must(Model::open(checkpoint_, plan_,
                                {.table = must(choose_table(options.isa)),
                                 .threads = options.threads,
                                 .pack = options.pack}))) {}

  PlanInput input(const TinyOptions& options) const {
    const uint64_t everything = uint64_t{1} << 40;
    return plan_input(checkpoint_,
                      {.n_sequences = options.n_sequences,
                       .context_positions = options.context,
                       .n_logits = options.n_sequences * kTentativeRowsMax,
                       .threads = options.threads},
                      options.ram_bytes == 0 ? everything : options.ram_bytes, options.pack);
  }

  std::unique_ptr<State> new_state() {
    return std::make_unique<State>(model_->config(), pages_, kTentativeRowsMax);
  }
  // Runs a pass and returns the wanted logits; fails the test on an error.
  Logits run(const Batch& batch) {
    Logits logits(static_cast<size_t>(batch.n_logits() * vocab()));
    const Status status =
        model_->forward(batch, {logits.data(), batch.n_logits(), vocab()}, nullptr, nullptr);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().what);
    return logits;
  }
  // Appends tokens that stay; logits of the last `n_logits`.
  Logits keep(State& state, std::vector<TokenId> tokens, int64_t n_logits) {
    return run({{{&state, std::move(tokens), RowFate::kKeep, n_logits}}});
  }
  // Computes tentative rows, all with logits; nothing is committed.
  Logits attempt(State& state, std::vector<TokenId> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    return run({{{&state, std::move(tokens), RowFate::kTentative, n}}});
  }

  Model& model() { return *model_; }
  const MemoryPlan& plan() const { return plan_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  PagePool& pages() { return pages_; }
  int64_t vocab() const { return checkpoint_.config().vocab_size; }

 private:
  Checkpoint checkpoint_;
  MemoryPlan plan_;
  PagePool pages_;
  std::unique_ptr<Model> model_;
};

// Ids below `vocab`, by chance; the default is below tiny-k3's control ids.
inline std::vector<TokenId> some_tokens(int64_t n, uint32_t seed = 1, uint32_t vocab = 3840) {
  std::vector<TokenId> tokens;
  uint32_t x = seed * 2654435761u + 12345u;
  for (int64_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    tokens.push_back(static_cast<TokenId>((x >> 8) % vocab));
  }
  return tokens;
}

}  // namespace sluice::testing
