// The header of a safetensors file. Input: the file's size in decimal, a border, the header's text
// (the target writes its length in front); or, without a border, the file as it is.
#include <charconv>
#include <cstring>
#include <set>
#include <string>

#include "format/safetensors.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/scratch_file.h"
#include "fuzz/sections.h"

namespace sluice {
namespace {

void check_file(const ScratchFile& scratch) {
  const Result<FilePtr> file = File::open(scratch.path(), Direct::kOff);
  CHECK(file.ok());
  std::set<std::string> names;
  uint64_t payload_bytes = 0;
  const auto visit = [&](std::string_view name, const TensorInfo& info) -> Status {
    CHECK(names.emplace(name).second);
    CHECK(info.offset <= file.value()->size() && info.bytes <= file.value()->size() - info.offset);
    payload_bytes += info.bytes;
    uint64_t expected = dtype_bytes(info.dtype);
    for (const int64_t dim : info.shape) {
      CHECK(dim >= 0);
      if (info.dtype == Dtype::kOther) continue;
      CHECK(!__builtin_mul_overflow(expected, static_cast<uint64_t>(dim), &expected));
    }
    CHECK(info.dtype == Dtype::kOther || expected == info.bytes);
    return Ok{};
  };
  const Result<SafetensorsHeader> header = read_safetensors_header(*file.value(), visit);
  if (!header.ok()) {
    CHECK(header.error().code == Code::kCorrupt);
    CHECK(header.error().what.starts_with(file.value()->path()));
    return;
  }
  CHECK(header.value().payload_bytes == payload_bytes);
  CHECK(header.value().payload_begin + payload_bytes == file.value()->size());
}

}  // namespace

void fuzz_safetensors(std::string_view input) {
  constexpr uint64_t kFileBytesMax = uint64_t{1} << 40;  // sparse
  const std::vector<std::string_view> parts = sections(input, 1);
  if (parts.size() == 1) return check_file(ScratchFile(input));
  const std::string_view header = parts[1];
  const uint64_t header_bytes = header.size();
  std::string bytes(sizeof(header_bytes), '\0');
  std::memcpy(bytes.data(), &header_bytes, sizeof(header_bytes));
  const ScratchFile scratch(bytes.append(header));
  uint64_t payload_bytes = 0;
  std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), payload_bytes);
  scratch.resize(bytes.size() + payload_bytes % kFileBytesMax);
  check_file(scratch);
}

}  // namespace sluice
