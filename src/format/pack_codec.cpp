#include "format/pack_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/xxh3.h"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little);  // values are written as they lie

constexpr std::string_view kHeaderMagic("SLUICEPK", 8);
constexpr std::string_view kFooterMagic("sluice pack end\n", 16);
constexpr size_t kFingerprintBytes = 64;
constexpr size_t kPolicyBytes = 16;  // zero-padded text
// Offsets of the header's fields.
constexpr size_t kVersionAt = 8;
constexpr size_t kFingerprintAt = 16;
constexpr size_t kChecksumAt = kPackHeaderBytes - 8;

// Appends values and texts.
class ByteWriter {
 public:
  template <class T>
  void value(T v) {
    const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(v);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void text(std::string_view text) {
    const auto raw = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void pad_to(size_t size) { bytes_.resize(size); }
  size_t size() const { return bytes_.size(); }
  const PackBytes& bytes() const { return bytes_; }
  PackBytes take() { return std::move(bytes_); }

 private:
  PackBytes bytes_;
};

template <class T>
T value_at(std::span<const std::byte> bytes, size_t offset) {
  T v;
  std::memcpy(&v, bytes.data() + offset, sizeof(v));
  return v;
}

std::string text_at(std::span<const std::byte> bytes, size_t offset, size_t size) {
  std::string text(size, '\0');
  std::memcpy(text.data(), bytes.data() + offset, size);
  return text;
}

// The file's numbers for dtypes.
uint16_t dtype_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return 1;
    case Dtype::kF32:
      return 2;
    case Dtype::kI8:
      return 3;
    default:
      check_failed(__FILE__, __LINE__, "a dtype that no pack holds");
  }
}

void append_entry(ByteWriter& out, const PackTensor& tensor) {
  out.value(static_cast<uint16_t>(tensor.name.size()));
  out.value(dtype_code(tensor.dtype));
  out.value(static_cast<uint32_t>(tensor.shape.size()));
  for (const int64_t dim : tensor.shape) out.value(dim);
  out.value(tensor.offset);
  out.value(tensor.bytes);
  out.value(tensor.checksum);
  out.text(tensor.name);
}

}  // namespace

PackBytes encode_pack_header(const PackLayout& layout) {
  CHECK(layout.fingerprint.size() == kFingerprintBytes);
  ByteWriter out;
  out.text(kHeaderMagic);
  out.value(kPackVersion);
  out.value(static_cast<uint32_t>(layout.groups.size()));
  out.text(layout.fingerprint);
  out.text(kPackPolicy);
  out.pad_to(kFingerprintAt + kFingerprintBytes + kPolicyBytes);
  out.value(layout.table_offset);
  out.value(layout.table_bytes);
  out.value(layout.file_bytes);
  out.pad_to(kChecksumAt);
  out.value(xxh3_64(out.bytes()));
  return out.take();
}

uint64_t pack_entry_bytes(const PackTensor& tensor) {
  // Lengths, dtype and rank; the dimensions; offset, bytes and checksum; the name.
  return 8 + 8 * tensor.shape.size() + 24 + tensor.name.size();
}

PackBytes encode_pack_entries(const PackGroup& group) {
  ByteWriter out;
  for (const PackTensor& tensor : group.tensors) append_entry(out, tensor);
  CHECK(out.size() == group.entries_bytes);
  return out.take();
}

PackBytes encode_pack_table(const PackLayout& layout) {
  uint64_t n_tensors = 0;
  for (const PackGroup& group : layout.groups) n_tensors += group.tensors.size();
  ByteWriter out;
  out.value(n_tensors);
  for (const PackGroup& group : layout.groups) {
    for (const PackTensor& tensor : group.tensors) append_entry(out, tensor);
  }
  CHECK(out.size() == layout.table_bytes);
  return out.take();
}

PackBytes encode_pack_footer(const PackLayout& layout, std::span<const std::byte> table) {
  ByteWriter out;
  out.value(xxh3_64(table));
  out.value(layout.file_bytes);
  out.text(kFooterMagic);
  CHECK(out.size() == kPackFooterBytes);
  return out.take();
}

Status check_pack_header(std::span<const std::byte> header, const PackLayout& layout) {
  CHECK(header.size() == kPackHeaderBytes);
  if (text_at(header, 0, kHeaderMagic.size()) != kHeaderMagic) {
    return Error{Code::kCorrupt, "does not begin as an int8 pack does"};
  }
  if (const auto version = value_at<uint32_t>(header, kVersionAt); version != kPackVersion) {
    return Error{Code::kUnsupported, "is a pack of version " + std::to_string(version) +
                                         ", and this program reads version " +
                                         std::to_string(kPackVersion)};
  }
  if (xxh3_64(header.first(kChecksumAt)) != value_at<uint64_t>(header, kChecksumAt)) {
    return Error{Code::kCorrupt, "has a damaged header"};
  }
  const std::string fingerprint = text_at(header, kFingerprintAt, kFingerprintBytes);
  if (fingerprint != layout.fingerprint) {
    return Error{Code::kCorrupt, "was made from another checkpoint (fingerprint " +
                                     fingerprint.substr(0, 16) + ", this one has " +
                                     layout.fingerprint.substr(0, 16) + ")"};
  }
  if (!std::ranges::equal(header, encode_pack_header(layout))) {
    return Error{Code::kCorrupt, "was laid out by another policy than " + std::string(kPackPolicy)};
  }
  return Ok{};
}

bool take_pack_checksums(std::span<const std::byte> entries, PackGroup& group) {
  if (entries.size() != group.entries_bytes) return false;
  PackGroup found = group;
  size_t at = 0;
  for (PackTensor& tensor : found.tensors) {
    tensor.checksum = value_at<uint64_t>(entries, at + 24 + 8 * tensor.shape.size());
    at += pack_entry_bytes(tensor);
  }
  if (!std::ranges::equal(entries, encode_pack_entries(found))) return false;
  group = std::move(found);
  return true;
}

}  // namespace sluice
