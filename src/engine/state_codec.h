// The headers of state and page files as bytes (docs/FORMAT.md 2.2), little-endian, and the sizes
// of their sections. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/xxh3.h"
#include "engine/state_file.h"

namespace sluice {

constexpr size_t kStateHeaderBytes = 256;
constexpr size_t kPageHeaderBytes = 64;
constexpr uint64_t kSectionChecksumBytes = 8;

using StateHeader = std::array<std::byte, kStateHeaderBytes>;
using PageHeader = std::array<std::byte, kPageHeaderBytes>;

// Bytes of the sections of a state file, checksums not counted.
struct StateLayout {
  uint64_t token_bytes = 0;
  uint64_t page_list_bytes = 0;
  uint64_t kda_bytes = 0;
  uint64_t tail_bytes = 0;  // latent rows after the last whole page
  int64_t n_pages = 0;
  int64_t tail_rows = 0;
  uint64_t file_bytes() const;
};
// Of `n_tokens` tokens of a sequence with the shape of `state`.
StateLayout state_layout(int64_t n_tokens, const State& state);

// The hash of no tokens under `key`: the chain of contracts 4 starts from it, so that names of
// different keys never meet.
Hash128 key_hash(const StateKey& key);

StateHeader encode_state_header(const StateKey& key, int64_t n_tokens, const Hash128& hash,
                                const StateLayout& layout);

// The token count and hash of a header that is whole and of `key`. Errors (kCorrupt, kUnsupported)
// are the end of a sentence that begins with the file.
struct StateIdentity {
  int64_t n_tokens = 0;
  Hash128 hash;
};
Result<StateIdentity> decode_state_header(const StateHeader& header, const StateKey& key);

struct PageIdentity {
  Hash128 prefix;        // of all tokens up to the page's end
  int64_t n_tokens = 0;  // of that prefix
  uint64_t payload_bytes = 0;
};
PageHeader encode_page_header(const PageIdentity& page, uint64_t checksum);
// Whether the header is whole and that of `page`; its checksum of the payload then. Errors as
// above.
Result<uint64_t> decode_page_header(const PageHeader& header, const PageIdentity& page);

}  // namespace sluice
