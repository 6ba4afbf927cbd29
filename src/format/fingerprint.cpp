#include "format/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "format/safetensors.h"
#include "io/file.h"

namespace sluice {
namespace {

constexpr uint64_t kConfigBytesMax = uint64_t{1} << 24;
constexpr std::string_view kDomain = "sluice checkpoint 1\n";

void add_number(Sha256& sha, uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  }
  sha.update(bytes);
}

void add_text(Sha256& sha, std::string_view text) {
  add_number(sha, text.size());
  sha.update(text);
}

std::string file_name(const File& file) {
  return std::filesystem::path(file.path()).filename().string();
}

}  // namespace

Result<std::string> fingerprint(const Checkpoint& checkpoint) {
  Sha256 sha;
  sha.update(kDomain);
  TRY(const std::string config,
      read_text_file(checkpoint.directory() / "config.json", kConfigBytesMax));
  add_text(sha, config);

  std::vector<std::pair<std::string, size_t>> tensors;  // (name, index of its file)
  tensors.reserve(static_cast<size_t>(checkpoint.n_tensors()));
  std::vector<uint64_t> header_bytes;
  for (size_t i = 0; i < checkpoint.files().size(); ++i) {
    TRY(const SafetensorsHeader header,
        read_safetensors_header(checkpoint.files()[i],
                                [&](std::string_view name, const TensorInfo&) {
                                  tensors.emplace_back(name, i);
                                  return Status(Ok{});
                                }));
    header_bytes.push_back(header.payload_begin);
  }
  std::sort(tensors.begin(), tensors.end());
  add_number(sha, tensors.size());
  for (const auto& [name, file] : tensors) {
    add_text(sha, name);
    add_text(sha, file_name(checkpoint.files()[file]));
  }

  add_number(sha, checkpoint.files().size());
  for (size_t i = 0; i < checkpoint.files().size(); ++i) {
    const File& file = checkpoint.files()[i];
    add_text(sha, file_name(file));
    add_number(sha, file.size());
    std::string header(header_bytes[i], '\0');
    TRY_OK(file.read_at(0, std::as_writable_bytes(std::span(header))));
    add_text(sha, header);
  }
  return sha.hex();
}

}  // namespace sluice
