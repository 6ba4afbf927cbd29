#include "engine/session.h"

#include <algorithm>
#include <utility>

namespace sluice {

Session::Session(const Config& config, PagePool& pages, int64_t log_rows_max)
    : state_(config, pages, log_rows_max) {
  tokens_.reserve(static_cast<size_t>(pages.positions_max()));  // so that a token allocates nothing
}

int64_t Session::known(std::span<const TokenId> prompt) const {
  for (const int64_t length : {state_.length(), state_.mark_length()}) {
    if (length >= 0 && length < std::ssize(prompt) &&
        std::equal(tokens_.begin(), tokens_.begin() + length, prompt.begin())) {
      return length;
    }
  }
  return 0;
}

int64_t Session::resume(std::span<const TokenId> prompt) {
  CHECK(std::ssize(tokens_) == state_.length());
  const int64_t length = known(prompt);
  if (length == 0) {
    reset();
  } else if (length < state_.length()) {
    state_.return_to_mark();
    tokens_.resize(static_cast<size_t>(length));
  }
  state_.drop_mark();
  return length;
}

void Session::append(std::span<const TokenId> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Session::reset() {
  state_.reset();
  tokens_.clear();
}

Result<SavedState> Session::save(const std::filesystem::path& directory,
                                 const StateKey& key) const {
  return save_state(directory, key, tokens_, state_);
}

Result<int64_t> Session::load(const std::filesystem::path& file, const StateKey& key) {
  tokens_.clear();
  TRY(tokens_, load_state(file, key, state_));
  return state_.length();
}

}  // namespace sluice
