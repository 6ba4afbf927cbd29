// A whole snapshot directory. Sections: config.json, the index (empty: one model.safetensors), then
// for each shard a line "name payload_bytes" and its header's text. Payloads are sparse.
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

#include "format/checkpoint.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/sections.h"
#include "io/temp_directory.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
}

// Names as the fuzzer makes them up must stay inside the directory.
bool is_usable_name(std::string_view name) {
  return !name.empty() && name.size() < 200 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void write_shard(const fs::path& directory, std::string_view section) {
  constexpr uint64_t kPayloadBytesMax = uint64_t{1} << 40;
  const std::string_view line = section.substr(0, section.find('\n'));
  const std::string_view header = section.substr(std::min(section.size(), line.size() + 1));
  const std::string_view name = line.substr(0, line.find(' '));
  if (!is_usable_name(name)) return;
  const std::string_view number = line.substr(std::min(line.size(), name.size() + 1));
  uint64_t payload_bytes = 0;
  std::from_chars(number.data(), number.data() + number.size(), payload_bytes);
  const uint64_t header_bytes = header.size();
  std::string bytes(sizeof(header_bytes), '\0');
  std::memcpy(bytes.data(), &header_bytes, sizeof(header_bytes));
  write(directory / name, bytes.append(header));
  fs::resize_file(directory / name, bytes.size() + payload_bytes % kPayloadBytesMax);
}

void check_tensor(const Checkpoint& checkpoint, const TensorRef& tensor) {
  if (!tensor.present()) return;
  CHECK(tensor.file < std::ssize(checkpoint.files()));
  const uint64_t file_bytes = checkpoint.file(tensor.file).size();
  CHECK(tensor.offset <= file_bytes && tensor.bytes <= file_bytes - tensor.offset);
  CHECK(static_cast<uint64_t>(tensor.rows * tensor.cols) * dtype_bytes(tensor.dtype) ==
        tensor.bytes);
}

void check_experts(const Checkpoint& checkpoint, LayerId layer) {
  const Config& config = checkpoint.config();
  if (!config.is_moe(layer)) return;
  const uint64_t record_bytes = checkpoint.expert_layout().record_bytes;
  for (int32_t e = 0; e < config.moe.n_experts; ++e) {
    const ExpertRef expert = checkpoint.expert({layer, ExpertId{e}});
    CHECK(expert.file >= 0 && expert.file < std::ssize(checkpoint.files()));
    const uint64_t file_bytes = checkpoint.file(expert.file).size();
    CHECK(expert.offset <= file_bytes && record_bytes <= file_bytes - expert.offset);
  }
}

}  // namespace

void fuzz_checkpoint(std::string_view input) {
  const TempDirectory directory;
  const std::vector<std::string_view> parts = sections(input, 2);
  write(directory.path() / "config.json", parts[0]);
  if (!parts[1].empty()) write(directory.path() / "model.safetensors.index.json", parts[1]);
  for (size_t i = 2; i < parts.size(); ++i) write_shard(directory.path(), parts[i]);

  const Result<Checkpoint> opened = Checkpoint::open(directory.path(), Direct::kOff);
  if (!opened.ok()) {
    CHECK(!opened.error().what.empty());
    return;
  }
  const Checkpoint& checkpoint = opened.value();
  CHECK(checkpoint.identity().size() == 64);
  for (size_t role = 0; role < kRoles; ++role) {
    check_tensor(checkpoint, checkpoint.global(static_cast<Role>(role)));
    for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
      check_tensor(checkpoint, checkpoint.tensor(LayerId{layer}, static_cast<Role>(role)));
    }
  }
  for (int32_t layer = 0; layer < checkpoint.config().n_layers; ++layer) {
    check_experts(checkpoint, LayerId{layer});
  }
}

}  // namespace sluice
