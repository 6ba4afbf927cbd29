#include "replica/replica.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "replica/config_files.h"

namespace sluice::replica {
namespace {

namespace fs = std::filesystem;

Error write_error(const fs::path& path) {
  return Error{Code::kIo, "cannot write " + path.string() +
                              ": name a directory on a file system with sparse files, 2 TB of file "
                              "size and 200 MB of room"};
}

Status write_text(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) return write_error(path);
  return Ok{};
}

// As the safetensors library writes it: metadata first, spaces up to a multiple of 8 bytes.
std::string header_text(const std::vector<Tensor>& tensors, uint64_t& payload_bytes) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  payload_bytes = 0;
  for (const Tensor& tensor : tensors) {
    text += ",\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      text += (i ? "," : "") + std::to_string(tensor.shape[i]);
    }
    const uint64_t end = payload_bytes + tensor.bytes();
    text +=
        "],\"data_offsets\":[" + std::to_string(payload_bytes) + "," + std::to_string(end) + "]}";
    payload_bytes = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

Status write_shard(const fs::path& path, const std::vector<Tensor>& tensors) {
  uint64_t payload_bytes = 0;
  const std::string header = header_text(tensors, payload_bytes);
  const uint64_t header_bytes = header.size();
  std::string begin(sizeof(header_bytes), '\0');
  std::memcpy(begin.data(), &header_bytes, sizeof(header_bytes));
  TRY_OK(write_text(path, begin + header));
  std::error_code failed;
  fs::resize_file(path, begin.size() + header.size() + payload_bytes, failed);
  if (failed) return write_error(path);
  return Ok{};
}

Status write_index(const fs::path& directory, std::string_view left_out) {
  const fs::path path = directory / "model.safetensors.index.json";
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "{\n  \"metadata\": {\n    \"total_size\": " << kPayloadBytes
      << "\n  },\n  \"weight_map\": {";
  const char* comma = "\n";
  for (int shard = 1; shard <= kShards; ++shard) {
    std::vector<Tensor> tensors = shard_tensors(shard);
    // The release lists the experts from the last to the first (spec 2.4).
    std::reverse(tensors.begin(), tensors.end());
    const std::string file = shard_name(shard);
    for (const Tensor& tensor : tensors) {
      if (tensor.name == left_out) continue;
      out << comma << "    \"" << tensor.name << "\": \"" << file << '"';
      comma = ",\n";
    }
  }
  out << "\n  }\n}\n";
  out.close();
  if (!out) return write_error(path);
  return Ok{};
}

Status write_replica(const fs::path& directory) {
  int64_t n_tensors = 0;
  uint64_t total_bytes = 0;
  for (int shard = 1; shard <= kShards; ++shard) {
    const std::vector<Tensor> tensors = shard_tensors(shard);
    uint64_t payload_bytes = 0;
    for (const Tensor& tensor : tensors) payload_bytes += tensor.bytes();
    const ShardSize published = published_size(shard);
    CHECK(static_cast<int64_t>(tensors.size()) == published.n_tensors);
    CHECK(payload_bytes == published.payload_bytes);
    n_tensors += published.n_tensors;
    total_bytes += payload_bytes;
    TRY_OK(write_shard(directory / shard_name(shard), tensors));
  }
  CHECK(n_tensors == kTensors && total_bytes == kPayloadBytes);
  TRY_OK(write_index(directory, ""));
  TRY_OK(write_text(directory / "config.json", dump_json(config_json())));
  TRY_OK(write_text(directory / "generation_config.json",
                    R"({"max_length": 1048576, "eos_token_id": 163586})"));
  TRY_OK(write_text(directory / "tokenizer_config.json", dump_json(tokenizer_config_json())));
  return write_text(directory / "tiktoken.model", tiktoken_model());
}

}  // namespace sluice::replica
