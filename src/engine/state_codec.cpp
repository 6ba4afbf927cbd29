#include "engine/state_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little);  // values are written as they lie

constexpr std::string_view kStateMagic("SLUICEST", 8);
constexpr std::string_view kPageMagic("SLUICEPG", 8);
constexpr uint32_t kStateVersion = 1;
constexpr uint32_t kPageVersion = 1;
constexpr size_t kVersionAt = 8;

// The key inside a state header.
constexpr size_t kKeyAt = 16;
constexpr size_t kFingerprintBytes = 64;
constexpr size_t kWordBytes = 16;  // zero-padded text
constexpr size_t kSpineAt = kFingerprintBytes;
constexpr size_t kFamilyAt = kSpineAt + kWordBytes;
constexpr size_t kEpsAt = kFamilyAt + kWordBytes;
constexpr size_t kArithmeticAt = kEpsAt + sizeof(float);
constexpr size_t kKeyBytes = kArithmeticAt + sizeof(uint32_t);

constexpr size_t kTokensAt = kKeyAt + kKeyBytes;
constexpr size_t kHashAt = kTokensAt + 8;
constexpr size_t kKdaBytesAt = kHashAt + 16;
constexpr size_t kTailBytesAt = kKdaBytesAt + 8;
constexpr size_t kPagesAt = kTailBytesAt + 8;
constexpr size_t kFileBytesAt = kPagesAt + 8;
static_assert(kTokensAt == 120 && kFileBytesAt == 168);  // docs/FORMAT.md 2.2

using KeyBytes = std::array<std::byte, kKeyBytes>;

template <class T>
void put(std::span<std::byte> bytes, size_t at, T value) {
  std::memcpy(bytes.subspan(at, sizeof(value)).data(), &value, sizeof(value));
}

template <class T>
T get(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.subspan(at, sizeof(value)).data(), sizeof(value));
  return value;
}

void put_text(std::span<std::byte> bytes, size_t at, size_t room, std::string_view text) {
  CHECK(text.size() <= room);
  std::memcpy(bytes.subspan(at, room).data(), text.data(), text.size());
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b, size_t at, size_t n) {
  return std::ranges::equal(a.subspan(at, n), b.subspan(at, n));
}

KeyBytes encode_key(const StateKey& key) {
  KeyBytes bytes{};
  put_text(bytes, 0, kFingerprintBytes, key.fingerprint);
  put_text(bytes, kSpineAt, kWordBytes, key.spine);
  put_text(bytes, kFamilyAt, kWordBytes, key.family);
  put(bytes, kEpsAt, key.qkv_norm_eps);
  put(bytes, kArithmeticAt, kArithmeticVersion);
  return bytes;
}

// Says which part of the key is another one.
Status check_key(std::span<const std::byte> found, const StateKey& key) {
  const KeyBytes wanted = encode_key(key);
  const auto differs = [&](size_t at, size_t n) { return !same(found, wanted, at, n); };
  const auto other = [](const std::string& what) {
    return Error{Code::kUnsupported, "was written with " + what};
  };
  if (differs(0, kFingerprintBytes)) return other("another model");
  if (differs(kSpineAt, kWordBytes)) return other("another spine format than " + key.spine);
  if (differs(kFamilyAt, kWordBytes)) return other("another kernel family than " + key.family);
  if (differs(kEpsAt, sizeof(float))) return other("another --qkv-norm-eps");
  if (differs(kArithmeticAt, sizeof(uint32_t))) return other("another version of the arithmetic");
  return Ok{};
}

// Magic, version and the checksum that ends a header.
Status check_frame(std::span<const std::byte> header, std::string_view magic, uint32_t version) {
  if (std::memcmp(header.data(), magic.data(), magic.size()) != 0) {
    return Error{Code::kCorrupt, "does not begin with " + std::string(magic)};
  }
  if (const auto found = get<uint32_t>(header, kVersionAt); found != version) {
    return Error{Code::kUnsupported, "has the format version " + std::to_string(found) +
                                         ", and this program reads version " +
                                         std::to_string(version)};
  }
  const size_t checksum_at = header.size() - kSectionChecksumBytes;
  if (get<uint64_t>(header, checksum_at) != xxh3_64(header.first(checksum_at))) {
    return Error{Code::kCorrupt, "is damaged in its header"};
  }
  return Ok{};
}

void put_frame(std::span<std::byte> header, std::string_view magic, uint32_t version) {
  std::memcpy(header.data(), magic.data(), magic.size());
  put(header, kVersionAt, version);
  const size_t checksum_at = header.size() - kSectionChecksumBytes;
  put(header, checksum_at, xxh3_64(header.first(checksum_at)));
}

}  // namespace

uint64_t StateLayout::file_bytes() const {
  constexpr uint64_t kSections = 4;
  return kStateHeaderBytes + token_bytes + page_list_bytes + kda_bytes + tail_bytes +
         kSections * kSectionChecksumBytes;
}

StateLayout state_layout(int64_t n_tokens, const State& state) {
  const PageShape& pages = state.page_shape();
  const bool has_pages = pages.floats() > 0;
  StateLayout layout;
  layout.n_pages = has_pages ? n_tokens / kPagePositions : 0;
  layout.tail_rows = has_pages ? n_tokens % kPagePositions : 0;
  layout.token_bytes = static_cast<uint64_t>(n_tokens) * sizeof(TokenId);
  layout.page_list_bytes = static_cast<uint64_t>(layout.n_pages) * sizeof(Hash128);
  layout.kda_bytes = state.kda_floats().size_bytes();
  layout.tail_bytes =
      static_cast<uint64_t>(layout.tail_rows * pages.n_mla_layers * pages.latent_dim) *
      sizeof(float);
  return layout;
}

Hash128 key_hash(const StateKey& key) { return xxh3_128(encode_key(key)); }

StateHeader encode_state_header(const StateKey& key, int64_t n_tokens, const Hash128& hash,
                                const StateLayout& layout) {
  StateHeader header{};
  std::ranges::copy(encode_key(key), header.begin() + kKeyAt);
  put(header, kTokensAt, n_tokens);
  put(header, kHashAt, hash.low);
  put(header, kHashAt + 8, hash.high);
  put(header, kKdaBytesAt, layout.kda_bytes);
  put(header, kTailBytesAt, layout.tail_bytes);
  put(header, kPagesAt, layout.n_pages);
  put(header, kFileBytesAt, layout.file_bytes());
  put_frame(header, kStateMagic, kStateVersion);
  return header;
}

Result<StateIdentity> decode_state_header(const StateHeader& header, const StateKey& key) {
  TRY_OK(check_frame(header, kStateMagic, kStateVersion));
  TRY_OK(check_key(std::span(header).subspan(kKeyAt, kKeyBytes), key));
  return StateIdentity{
      .n_tokens = get<int64_t>(header, kTokensAt),
      .hash = {.low = get<uint64_t>(header, kHashAt), .high = get<uint64_t>(header, kHashAt + 8)}};
}

PageHeader encode_page_header(const PageIdentity& page, uint64_t checksum) {
  PageHeader header{};
  put(header, 16, page.prefix.low);
  put(header, 24, page.prefix.high);
  put(header, 32, page.n_tokens);
  put(header, 40, page.payload_bytes);
  put(header, 48, checksum);
  put_frame(header, kPageMagic, kPageVersion);
  return header;
}

Result<uint64_t> decode_page_header(const PageHeader& header, const PageIdentity& page) {
  TRY_OK(check_frame(header, kPageMagic, kPageVersion));
  const auto checksum = get<uint64_t>(header, 48);
  if (header != encode_page_header(page, checksum)) {
    return Error{Code::kCorrupt, "is the page of another prefix"};
  }
  return checksum;
}

}  // namespace sluice
