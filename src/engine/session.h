// One sequence between requests: a State and the tokens that it has read. A request whose prompt
// begins with those tokens computes only the others, and by the law its bits are those of a cold
// run. One owner: the thread that owns the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/state_file.h"
#include "model/pages.h"
#include "model/state.h"

namespace sluice {

// Invariant: tokens() are the state's, one for each committed position.
class Session {
 public:
  // `pages` outlives the session.
  Session(const Config& config, PagePool& pages, int64_t log_rows_max);

  // The length of the longest prefix of `prompt` that the state can go on from and that leaves at
  // least one token to compute: all its tokens, those up to the mark, or none.
  int64_t known(std::span<const TokenId> prompt) const;
  // Brings the state there and returns that length. Drops the mark: rows to keep may follow.
  int64_t resume(std::span<const TokenId> prompt);
  // Says which tokens a pass or a commit has made part of the state.
  void append(std::span<const TokenId> tokens);
  // The end of a prompt: a reply that is written otherwise in the next prompt costs no more than
  // itself.
  void mark() { state_.mark(); }
  void reset();

  State& state() { return state_; }
  std::span<const TokenId> tokens() const { return tokens_; }

  // As state_file.h has them; after an error of load() the session is empty.
  Result<SavedState> save(const std::filesystem::path& directory, const StateKey& key) const;
  Result<int64_t> load(const std::filesystem::path& file, const StateKey& key);

 private:
  State state_;
  std::vector<TokenId> tokens_;
};

}  // namespace sluice
