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
constexpr size_t kTableAt = 96;  // offset, then bytes
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

constexpr std::array<Dtype, 4> kDtypes = {Dtype::kOther, Dtype::kBf16, Dtype::kF32, Dtype::kI8};
constexpr uint32_t kRankMax = 8;

// Takes values and texts from the front of a table; everything is zero once it is too short.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T value() {
    if (!enough(sizeof(T))) return T{};
    const T v = value_at<T>(bytes_, 0);
    bytes_ = bytes_.subspan(sizeof(T));
    return v;
  }
  std::string text(size_t size) {
    if (!enough(size)) return {};
    std::string text = text_at(bytes_, 0, size);
    bytes_ = bytes_.subspan(size);
    return text;
  }
  bool ok() const { return ok_; }

 private:
  bool enough(size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    return ok_;
  }
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

// The next entry; false when it is none.
bool take_entry(ByteReader& in, PackTensor& tensor) {
  const auto name_bytes = in.value<uint16_t>();
  const auto dtype = in.value<uint16_t>();
  const auto rank = in.value<uint32_t>();
  if (!in.ok() || dtype == 0 || dtype >= kDtypes.size() || rank == 0 || rank > kRankMax) {
    return false;
  }
  tensor.dtype = kDtypes[dtype];
  for (uint32_t i = 0; i < rank; ++i) tensor.shape.push_back(in.value<int64_t>());
  tensor.cols = tensor.shape.back();
  tensor.rows = tensor.shape.front();
  tensor.offset = in.value<uint64_t>();
  tensor.bytes = in.value<uint64_t>();
  tensor.checksum = in.value<uint64_t>();
  tensor.name = in.text(name_bytes);
  constexpr int64_t kDimMax = int64_t{1} << 31;
  const bool sane =
      std::ranges::all_of(tensor.shape, [](int64_t dim) { return dim > 0 && dim < kDimMax; });
  if (!in.ok() || !sane) return false;
  return !tensor.has_scales() || (rank == 2 && tensor.scales_at() < tensor.bytes);
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

Result<std::vector<PackTensor>> read_pack_table(const File& file) {
  const auto corrupt = [&file](const char* why) {
    return Error{Code::kCorrupt, file.path() + " " + why + ": make it again"};
  };
  if (file.size() < kPackHeaderBytes) return corrupt("is too short for an int8 pack");
  PackBytes header(kPackHeaderBytes);
  TRY_OK(file.read_at(0, header));
  const auto table_offset = value_at<uint64_t>(header, kTableAt);
  const auto table_bytes = value_at<uint64_t>(header, kTableAt + 8);
  const bool right =
      text_at(header, 0, kHeaderMagic.size()) == kHeaderMagic &&
      xxh3_64(std::span(header).first(kChecksumAt)) == value_at<uint64_t>(header, kChecksumAt);
  if (!right || !file.check_range(table_offset, table_bytes).ok()) {
    return corrupt("has a damaged header");
  }
  PackBytes table(table_bytes);
  TRY_OK(file.read_at(table_offset, table));
  ByteReader in(table);
  const auto n_tensors = in.value<uint64_t>();
  std::vector<PackTensor> tensors;
  for (uint64_t i = 0; i < n_tensors; ++i) {
    PackTensor& tensor = tensors.emplace_back();
    if (!take_entry(in, tensor) || !file.check_range(tensor.offset, tensor.bytes).ok()) {
      return corrupt("has a damaged table at its end");
    }
  }
  return tensors;
}

}  // namespace sluice
