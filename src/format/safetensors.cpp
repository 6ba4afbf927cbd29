#include "format/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/json.h"

namespace sluice {
namespace {

constexpr uint64_t kLengthBytes = 8;               // little-endian length of the JSON header
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // the format's own limit
constexpr size_t kRankMax = 8;
static_assert(std::endian::native == std::endian::little, "the length is read in host order");

struct DtypeEntry {
  Dtype dtype;
  std::string_view name;  // as headers spell it
  uint64_t bytes;
};
constexpr std::array<DtypeEntry, 6> kDtypes = {{{Dtype::kBf16, "BF16", 2},
                                                {Dtype::kF32, "F32", 4},
                                                {Dtype::kU8, "U8", 1},
                                                {Dtype::kF16, "F16", 2},
                                                {Dtype::kI8, "I8", 1},
                                                {Dtype::kI64, "I64", 8}}};

// One tensor as its header entry says, before it is checked against the others.
struct Entry {
  size_t name_begin = 0, name_end = 0;    // in Entries::names
  size_t shape_begin = 0, shape_end = 0;  // in Entries::shapes
  Dtype dtype = Dtype::kOther;
  uint64_t offset = 0;  // counts from the first payload byte
  uint64_t bytes = 0;
};

// All entries of a header, names and shapes one behind the other: K3's headers have half a million.
struct Entries {
  std::vector<Entry> list;
  std::string names;
  std::vector<int64_t> shapes;

  std::string_view name(const Entry& entry) const {
    return std::string_view(names).substr(entry.name_begin, entry.name_end - entry.name_begin);
  }
  std::span<const int64_t> shape(const Entry& entry) const {
    return std::span(shapes).subspan(entry.shape_begin, entry.shape_end - entry.shape_begin);
  }
};

std::string tensor_text(std::string_view name) { return "tensor \"" + std::string(name) + "\""; }

// Collects the entries of a header. Levels: 1 the header object, 2 one tensor's object (or the
// metadata), 3 an array in it.
class HeaderReader final : public JsonSax {
 public:
  explicit HeaderReader(Entries* entries) : entries_(entries) {}
  const std::string& problem() const { return problem_; }

  bool key(string_t& key) override {
    if (level_ == 1) return begin_tensor(key);
    if (in_metadata_) return true;
    for (size_t i = 0; i < kFieldNames.size(); ++i) {
      if (key != kFieldNames[i]) continue;
      field_ = static_cast<Field>(i);
      if (seen_[i]) return fail("has the field \"" + key + "\" twice");
      seen_[i] = true;
      return true;
    }
    return fail("has the unknown field \"" + key + "\"");
  }
  bool string(string_t& text) override {
    if (level_ == 2 && in_metadata_) return true;
    if (level_ != 2 || field_ != Field::kDtype) return fail("has text where none belongs");
    for (const DtypeEntry& known : kDtypes) {
      if (text == known.name) current_.dtype = known.dtype;
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (level_ != 3) return fail("has a number where none belongs");
    if (value > INT64_MAX) return fail("holds a number above 2^63");
    if (field_ == Field::kOffsets) {
      if (n_offsets_ == offsets_.size()) return fail("has more than two data_offsets");
      offsets_[n_offsets_++] = value;
      return true;
    }
    if (entries_->shapes.size() - current_.shape_begin == kRankMax) {
      return fail("has more than 8 dimensions");
    }
    entries_->shapes.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool start_object(std::size_t) override {
    ++level_;
    return level_ == 1 || (level_ == 2) || fail("holds an object where none belongs");
  }
  bool end_object() override {
    --level_;
    return level_ == 0 || in_metadata_ || end_tensor();
  }
  bool start_array(std::size_t) override {
    ++level_;
    const bool expected = level_ == 3 && !in_metadata_ && field_ != Field::kDtype;
    return expected || fail("holds an array where none belongs");
  }
  bool end_array() override {
    --level_;
    return true;
  }
  bool null() override { return fail("holds null"); }
  bool boolean(bool) override { return fail("holds true or false"); }
  bool number_integer(number_integer_t) override { return fail("holds a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return fail("holds a number that is not a plain integer");
  }
  bool binary(binary_t&) override { return fail("holds binary data"); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = "the header is not JSON at its byte " + std::to_string(at);
    return false;
  }

 private:
  enum class Field : uint8_t { kDtype, kShape, kOffsets };
  static constexpr std::array<std::string_view, 3> kFieldNames = {"dtype", "shape", "data_offsets"};

  bool begin_tensor(const std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (in_metadata_ && std::exchange(metadata_seen_, true)) {
      problem_ = "__metadata__ appears twice in the header";
      return false;
    }
    current_ = Entry{.name_begin = entries_->names.size(), .shape_begin = entries_->shapes.size()};
    entries_->names += name;
    seen_ = {};
    n_offsets_ = 0;
    return true;
  }
  bool end_tensor() {
    for (size_t i = 0; i < kFieldNames.size(); ++i) {
      if (!seen_[i]) return fail("has no " + std::string(kFieldNames[i]));
    }
    if (n_offsets_ != offsets_.size()) return fail("has fewer than two data_offsets");
    if (offsets_[0] > offsets_[1]) return fail("ends before it begins");
    current_.name_end = entries_->names.size();
    current_.shape_end = entries_->shapes.size();
    current_.offset = offsets_[0];
    current_.bytes = offsets_[1] - offsets_[0];
    entries_->list.push_back(current_);
    return true;
  }
  bool fail(const std::string& text) {
    const std::string name = entries_->names.substr(current_.name_begin);
    problem_ = level_ < 2 && name.empty() ? "the header " + text : tensor_text(name) + " " + text;
    return false;
  }

  Entries* entries_;
  Entry current_;
  Field field_ = Field::kDtype;
  std::array<bool, 3> seen_{};
  std::array<uint64_t, 2> offsets_{};
  size_t n_offsets_ = 0;
  int level_ = 0;
  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  std::string problem_;
};

Error corrupt(const File& file, const std::string& text) {
  return Error{Code::kCorrupt, file.path() + ": " + text};
}

// Bytes that dtype and shape ask for; nothing when the product overflows.
std::optional<uint64_t> shape_bytes(Dtype dtype, std::span<const int64_t> shape) {
  uint64_t bytes = dtype_bytes(dtype);
  for (const int64_t dim : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) return std::nullopt;
  }
  return bytes;
}

// The JSON text of the header.
Result<std::string> read_header_text(const File& file) {
  if (file.size() < kLengthBytes) {
    return corrupt(file, "has only " + std::to_string(file.size()) +
                             " bytes: the file is truncated, download it again");
  }
  std::array<std::byte, kLengthBytes> raw;
  TRY_OK(file.read_at(0, raw));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, raw.data(), sizeof(header_bytes));
  if (header_bytes > kHeaderBytesMax) {
    return corrupt(file, "its header claims " + std::to_string(header_bytes) +
                             " bytes, above the format's limit of " +
                             std::to_string(kHeaderBytesMax) + ": not a safetensors file");
  }
  if (header_bytes > file.size() - kLengthBytes) {
    return corrupt(file, "has " + std::to_string(file.size()) +
                             " bytes, but its header alone needs " +
                             std::to_string(kLengthBytes + header_bytes) +
                             ": the file is truncated, download it again");
  }
  std::string text(header_bytes, '\0');
  TRY_OK(file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text))));
  return text;
}

// Names are compared only where their hashes are equal: half a million long names with a common
// beginning take a second to sort.
Status check_names(const File& file, const Entries& entries) {
  std::vector<std::pair<size_t, std::string_view>> names;
  names.reserve(entries.list.size());
  for (const Entry& entry : entries.list) {
    const std::string_view name = entries.name(entry);
    names.emplace_back(std::hash<std::string_view>{}(name), name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Ok{};
  return corrupt(file, tensor_text(twice->second) + " appears twice in the header");
}

Status check_sizes(const File& file, const Entries& entries) {
  for (const Entry& entry : entries.list) {
    if (entry.dtype == Dtype::kOther) continue;
    const std::optional<uint64_t> expected = shape_bytes(entry.dtype, entries.shape(entry));
    if (expected == entry.bytes) continue;
    return corrupt(file, tensor_text(entries.name(entry)) + " has " + std::to_string(entry.bytes) +
                             " bytes, but its dtype and shape need " +
                             (expected ? std::to_string(*expected) : "more than 2^64"));
  }
  return Ok{};
}

// The ranges must cover the payload once, without holes. Returns the payload's bytes.
Result<uint64_t> check_ranges(const File& file, const Entries& entries, uint64_t payload_begin) {
  std::vector<const Entry*> order;
  order.reserve(entries.list.size());
  for (const Entry& entry : entries.list) order.push_back(&entry);
  const auto is_before = [](const Entry* a, const Entry* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  };
  // Libraries write headers in the order of the payload.
  if (!std::is_sorted(order.begin(), order.end(), is_before)) {
    std::sort(order.begin(), order.end(), is_before);
  }
  uint64_t covered = 0;
  for (const Entry* entry : order) {
    if (entry->offset != covered) {
      return corrupt(file, tensor_text(entries.name(*entry)) + " begins at payload byte " +
                               std::to_string(entry->offset) +
                               (entry->offset < covered ? ", inside the tensor before it"
                                                        : ", which leaves a hole behind byte " +
                                                              std::to_string(covered)));
    }
    covered += entry->bytes;  // both below 2^63
  }
  const uint64_t have = file.size() - payload_begin;
  if (have < covered) {
    return corrupt(file, "has " + std::to_string(file.size()) + " bytes, but its header needs " +
                             std::to_string(payload_begin + covered) +
                             ": the file is truncated, download it again");
  }
  if (have > covered) {
    return corrupt(file, "has " + std::to_string(have - covered) +
                             " bytes behind its last tensor: download it again");
  }
  return covered;
}

}  // namespace

const char* dtype_name(Dtype dtype) {
  for (const DtypeEntry& known : kDtypes) {
    if (known.dtype == dtype) return known.name.data();
  }
  return "an unsupported dtype";
}

uint64_t dtype_bytes(Dtype dtype) {
  for (const DtypeEntry& known : kDtypes) {
    if (known.dtype == dtype) return known.bytes;
  }
  return 0;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

Result<SafetensorsHeader> read_safetensors_header(const File& file, const VisitTensor& visit) {
  TRY(const std::string text, read_header_text(file));
  Entries entries;
  HeaderReader reader(&entries);
  if (!text.starts_with('{')) return corrupt(file, "its header is not a JSON object");
  if (!parse_json_events(text, file.path(), reader).ok()) return corrupt(file, reader.problem());

  SafetensorsHeader header;
  header.header_bytes = text.size();
  header.payload_begin = kLengthBytes + text.size();
  TRY_OK(check_names(file, entries));
  TRY_OK(check_sizes(file, entries));
  TRY(header.payload_bytes, check_ranges(file, entries, header.payload_begin));
  TensorInfo info;
  for (const Entry& entry : entries.list) {
    const std::span<const int64_t> shape = entries.shape(entry);
    info.dtype = entry.dtype;
    info.shape.assign(shape.begin(), shape.end());
    info.offset = header.payload_begin + entry.offset;
    info.bytes = entry.bytes;
    TRY_OK(visit(entries.name(entry), info));
  }
  return header;
}

}  // namespace sluice
