#include "engine/state_file.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/xxh3.h"
#include "engine/private_file.h"
#include "engine/state_codec.h"
#include "engine/token_hash.h"
#include "io/file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// Read at once, so that the checksum is taken of bytes that are still in cache.
constexpr size_t kChunkBytes = size_t{1} << 20;

// A page number of a sequence and what its file is called.
struct Page {
  int64_t index = 0;
  PageIdentity identity;
  fs::path path;
};

// The hash of all tokens, and that of each whole page's end.
struct PrefixHashes {
  Hash128 all;
  std::vector<Hash128> pages;
};

PrefixHashes hash_prefixes(const StateKey& key, std::span<const TokenId> tokens, int64_t n_pages) {
  constexpr auto kPageTokens = static_cast<size_t>(kPagePositions);
  TokenHash hash(key_hash(key));
  PrefixHashes hashes;
  for (int64_t page = 0; page < n_pages; ++page) {
    hash.add(tokens.first(kPageTokens));
    tokens = tokens.subspan(kPageTokens);
    hashes.pages.push_back(hash.value());
  }
  hash.add(tokens);
  hashes.all = hash.value();
  return hashes;
}

Page page_of(const fs::path& directory, int64_t index, const Hash128& prefix, const State& state) {
  return {.index = index,
          .identity = {.prefix = prefix,
                       .n_tokens = (index + 1) * kPagePositions,
                       .payload_bytes =
                           static_cast<uint64_t>(state.page_shape().floats()) * sizeof(float)},
          .path = directory / (hash_digits(prefix) + ".page")};
}

// The rows of a page that is not full: one span for each MLA layer.
std::vector<std::span<float>> tail_spans(const State& state, int64_t page, int64_t n_rows) {
  std::vector<std::span<float>> spans;
  if (n_rows == 0) return spans;
  const PageShape& shape = state.page_shape();
  const std::span<float> floats = state.page_floats(page);
  for (int64_t layer = 0; layer < shape.n_mla_layers; ++layer) {
    spans.push_back(floats.subspan(static_cast<size_t>(layer * kPagePositions * shape.latent_dim),
                                   static_cast<size_t>(n_rows * shape.latent_dim)));
  }
  return spans;
}

class SectionWriter {
 public:
  explicit SectionWriter(PrivateFile& file) : file_(file) {}
  Status put(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    return file_.write(bytes);
  }
  Status end() {
    const uint64_t digest = hash_.digest();
    return file_.write(std::as_bytes(std::span(&digest, 1)));
  }

 private:
  PrivateFile& file_;
  Xxh3 hash_;
};

Status write_section(PrivateFile& file, std::span<const std::byte> bytes) {
  SectionWriter section(file);
  TRY_OK(section.put(bytes));
  return section.end();
}

// Whether the file has the size and header of the page. Its payload is checked when it is loaded.
bool page_exists(const Page& page) {
  const auto file = File::open(page.path, Direct::kOff);
  if (!file.ok() || file.value()->size() != kPageHeaderBytes + page.identity.payload_bytes) {
    return false;
  }
  PageHeader header;
  return file.value()->read_at(0, header).ok() && decode_page_header(header, page.identity).ok();
}

// Bytes written: 0 when the page is there.
Result<uint64_t> save_page(const Page& page, const State& state) {
  if (page_exists(page)) return uint64_t{0};
  const auto payload = std::as_bytes(state.page_floats(page.index));
  TRY(PrivateFile file, PrivateFile::create(page.path));
  TRY_OK(file.write(encode_page_header(page.identity, xxh3_64(payload))));
  TRY_OK(file.write(payload));
  TRY_OK(file.commit());
  return file.bytes_written();
}

// Reads one file from front to back; its errors name it.
class SectionReader {
 public:
  explicit SectionReader(const File& file) : file_(file) {}

  Status read(std::span<std::byte> out) {
    TRY_OK(file_.read_at(at_, out));
    at_ += out.size();
    return Ok{};
  }
  Status put_into(std::span<std::byte> out) {
    while (!out.empty()) {
      const auto chunk = out.first(std::min(kChunkBytes, out.size()));
      TRY_OK(read(chunk));
      hash_->update(chunk);
      out = out.subspan(chunk.size());
    }
    return Ok{};
  }
  void begin() { hash_.emplace(); }
  Status end(const char* section) {
    uint64_t digest = 0;
    TRY_OK(read(std::as_writable_bytes(std::span(&digest, 1))));
    if (digest == hash_->digest()) return Ok{};
    return error({Code::kCorrupt, "is damaged in its " + std::string(section)});
  }
  Status section(std::span<std::byte> out, const char* name) {
    begin();
    TRY_OK(put_into(out));
    return end(name);
  }
  // `problem` is the end of the sentence.
  Error error(const Error& problem) const {
    return Error{problem.code,
                 file_.path() + " " + problem.what + ": the tokens have to be computed again"};
  }

 private:
  const File& file_;
  uint64_t at_ = 0;
  std::optional<Xxh3> hash_;
};

// The size of a file that must have `wanted` bytes.
Status check_size(const File& file, uint64_t wanted) {
  if (file.size() == wanted) return Ok{};
  return SectionReader(file).error({Code::kCorrupt, "has " + std::to_string(file.size()) +
                                                        " bytes where " + std::to_string(wanted) +
                                                        " belong"});
}

Status read_page(const Page& page, State& state) {
  TRY(const FilePtr file, File::open(page.path, Direct::kOff));
  TRY_OK(check_size(*file, kPageHeaderBytes + page.identity.payload_bytes));
  SectionReader reader(*file);
  PageHeader header;
  TRY_OK(reader.read(header));
  const auto checksum = decode_page_header(header, page.identity);
  if (!checksum.ok()) return reader.error(checksum.error());
  const auto payload = std::as_writable_bytes(state.page_floats(page.index));
  TRY_OK(reader.read(payload));
  if (xxh3_64(payload) == checksum.value()) return Ok{};
  return reader.error({Code::kCorrupt, "is damaged in its rows"});
}

Status load_page(const Page& page, State& state) {
  Status status = read_page(page, state);
  if (!status.ok() && status.error().code == Code::kCorrupt) {
    std::error_code ignored;
    fs::remove(page.path, ignored);
  }
  return status;
}

struct Prefix {
  std::vector<TokenId> tokens;
  PrefixHashes hashes;
};

// The tokens of a file whose header is that of `key`; leaves `reader` at the KDA section.
Result<Prefix> read_prefix(const File& file, const StateKey& key, const State& state,
                           SectionReader& reader) {
  StateHeader header;
  TRY_OK(reader.read(header));
  const auto identity = decode_state_header(header, key);
  if (!identity.ok()) return reader.error(identity.error());
  const int64_t n_tokens = identity.value().n_tokens;
  // A file holds every token, so a count beyond its size is damage, and nothing larger is taken.
  if (n_tokens < 0 || static_cast<uint64_t>(n_tokens) > file.size() / sizeof(TokenId)) {
    return reader.error({Code::kCorrupt, "is damaged in its header"});
  }
  const StateLayout layout = state_layout(n_tokens, state);
  TRY_OK(check_size(file, layout.file_bytes()));
  Prefix prefix;
  prefix.tokens.resize(static_cast<size_t>(n_tokens));
  TRY_OK(reader.section(std::as_writable_bytes(std::span(prefix.tokens)), "tokens"));
  std::vector<Hash128> pages(static_cast<size_t>(layout.n_pages));
  TRY_OK(reader.section(std::as_writable_bytes(std::span(pages)), "list of pages"));
  prefix.hashes = hash_prefixes(key, prefix.tokens, layout.n_pages);
  if (prefix.hashes.all != identity.value().hash || prefix.hashes.pages != pages ||
      header != encode_state_header(key, n_tokens, prefix.hashes.all, layout)) {
    return reader.error({Code::kCorrupt, "holds other tokens than its header says"});
  }
  return prefix;
}

Result<std::vector<TokenId>> load(const fs::path& path, const StateKey& key, State& state) {
  TRY(const FilePtr file, File::open(path, Direct::kOff));
  SectionReader reader(*file);
  if (file->size() < kStateHeaderBytes) {
    return reader.error({Code::kCorrupt, "is too short for a state"});
  }
  TRY(Prefix prefix, read_prefix(*file, key, state, reader));
  const auto n_tokens = std::ssize(prefix.tokens);
  const Status room = state.begin_restore(n_tokens);
  if (!room.ok()) return Error{room.error().code, path.string() + ": " + room.error().what};
  const StateLayout layout = state_layout(n_tokens, state);
  TRY_OK(reader.section(std::as_writable_bytes(state.kda_floats()), "KDA memory"));
  reader.begin();
  for (const std::span<float> rows : tail_spans(state, layout.n_pages, layout.tail_rows)) {
    TRY_OK(reader.put_into(std::as_writable_bytes(rows)));
  }
  TRY_OK(reader.end("last rows"));
  for (int64_t i = 0; i < layout.n_pages; ++i) {
    const Hash128& hash = prefix.hashes.pages[static_cast<size_t>(i)];
    TRY_OK(load_page(page_of(path.parent_path(), i, hash, state), state));
  }
  state.finish_restore(n_tokens);
  return std::move(prefix.tokens);
}

}  // namespace

std::string state_file_name(const StateKey& key, std::span<const TokenId> tokens) {
  return hash_digits(hash_prefixes(key, tokens, /*n_pages=*/0).all) + ".state";
}

Result<SavedState> save_state(const fs::path& directory, const StateKey& key,
                              std::span<const TokenId> tokens, const State& state) {
  const int64_t n_tokens = std::ssize(tokens);
  CHECK(n_tokens == state.length() && state.n_tentative() == 0);
  TRY_OK(make_private_directory(directory));
  remove_stale_parts(directory);
  const StateLayout layout = state_layout(n_tokens, state);
  const PrefixHashes hashes = hash_prefixes(key, tokens, layout.n_pages);
  SavedState saved;
  saved.path = directory / (hash_digits(hashes.all) + ".state");
  saved.n_tokens = n_tokens;
  for (int64_t i = 0; i < layout.n_pages; ++i) {
    const Page page = page_of(directory, i, hashes.pages[static_cast<size_t>(i)], state);
    TRY(const uint64_t bytes, save_page(page, state));
    saved.bytes_written += bytes;
    saved.pages.push_back(page.path);
  }
  TRY(PrivateFile file, PrivateFile::create(saved.path));
  TRY_OK(file.write(encode_state_header(key, n_tokens, hashes.all, layout)));
  TRY_OK(write_section(file, std::as_bytes(tokens)));
  TRY_OK(write_section(file, std::as_bytes(std::span(hashes.pages))));
  TRY_OK(write_section(file, std::as_bytes(state.kda_floats())));
  SectionWriter tail(file);
  for (const std::span<float> rows : tail_spans(state, layout.n_pages, layout.tail_rows)) {
    TRY_OK(tail.put(std::as_bytes(rows)));
  }
  TRY_OK(tail.end());
  TRY_OK(file.commit());
  saved.bytes_written += file.bytes_written();
  return saved;
}

Result<std::vector<TokenId>> load_state(const fs::path& file, const StateKey& key, State& state) {
  auto tokens = load(file, key, state);
  if (!tokens.ok()) state.reset();
  return tokens;
}

}  // namespace sluice
