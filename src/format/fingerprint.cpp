#include "format/fingerprint.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/sha256.h"
#include "io/file.h"

namespace sluice {
namespace {

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

}  // namespace

Result<std::string> fingerprint(const Checkpoint& checkpoint) {
  if (!checkpoint.identity().empty()) return checkpoint.identity();
  return Error{Code::kUnsupported, checkpoint.directory().string() +
                                       " was opened in part, and only a whole checkpoint has a "
                                       "fingerprint: download all shards and open them"};
}

Result<std::string> hash_identity(std::string_view config_text, const ShardIndex& index,
                                  std::span<const FilePtr> files,
                                  std::span<const uint64_t> header_bytes) {
  Sha256 sha;
  sha.update(kDomain);
  add_text(sha, config_text);
  add_number(sha, index.tensors.size());
  for (const uint32_t number : index.tensors.sorted()) {
    add_text(sha, index.tensors.name(number));
    add_text(sha, index.files[static_cast<size_t>(index.entries[number].file)]);
  }
  add_number(sha, files.size());
  std::string header;
  for (size_t i = 0; i < files.size(); ++i) {
    add_text(sha, index.files[i]);
    add_number(sha, files[i]->size());
    header.resize(header_bytes[i]);
    TRY_OK(files[i]->read_at(0, std::as_writable_bytes(std::span(header))));
    add_text(sha, header);
  }
  return sha.hex();
}

}  // namespace sluice
