// States on the drive (docs/FORMAT.md 2.2): `<id>.state` with the fixed-size memory of a sequence,
// and a page file for each 256 positions of its MLA cache, named by the prefix that it ends and
// shared by all states with that prefix. Functions over files; one writer or several a directory.
//
// Nothing that is read is trusted: a file of another model, of another version, cut off, or with a
// damaged bit is an Error, the state is empty after it, and the caller computes the tokens again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "model/state.h"

namespace sluice {

// Version of the arithmetic of docs/FORMAT.md part 1: a change of any bit raises it.
constexpr uint32_t kArithmeticVersion = 1;

// All that a state depends on beside its tokens (contracts 3).
struct StateKey {
  std::string fingerprint;  // of the checkpoint, 64 hex digits
  std::string spine;        // "bf16", or the policy of the int8 pack
  std::string family;       // of the kernel table
  float qkv_norm_eps = 0;
};

struct SavedState {
  std::filesystem::path path;
  std::vector<std::filesystem::path> pages;  // files that the state needs too
  int64_t n_tokens = 0;
  uint64_t bytes_written = 0;  // pages that were there already are not written again
};

// "<32 hex digits>.state": the name of the state of these tokens.
std::string state_file_name(const StateKey& key, std::span<const TokenId> tokens);

// Writes the state of `tokens` (as many as its length) into `directory`, which is made if need be.
// kIo names the file.
Result<SavedState> save_state(const std::filesystem::path& directory, const StateKey& key,
                              std::span<const TokenId> tokens, const State& state);

// Makes `state` the one that `file` holds and returns its tokens. On an error `state` is empty:
// kIo (cannot be read, a page is missing), kCorrupt (damaged or cut off), kUnsupported (another
// version, model or arithmetic), kBudget (longer than the context). A page file with a wrong
// checksum is removed, so that it is written anew.
Result<std::vector<TokenId>> load_state(const std::filesystem::path& file, const StateKey& key,
                                        State& state);

}  // namespace sluice
