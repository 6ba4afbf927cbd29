#include "make_slice/slice.h"

#include "base/json.h"
#include "format/generated_model.h"
#include "make_slice/config_files.h"
#include "make_slice/payload.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace sluice::slice {
namespace {

namespace fs = std::filesystem;

Error write_error(const fs::path& path) {
  return Error{Code::kIo, "cannot write " + path.string() +
                              ": name a directory on a file system with sparse files, 2 TB of file "
                              "size and room enough"};
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

Status write_index(const fs::path& directory, const Shape& shape, std::string_view left_out) {
  const fs::path path = directory / "model.safetensors.index.json";
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "{\n  \"metadata\": {\n    \"total_size\": " << payload_bytes(shape)
      << "\n  },\n  \"weight_map\": {";
  const char* comma = "\n";
  for (int64_t shard = 1; shard <= shape.shards(); ++shard) {
    std::vector<Tensor> tensors = shard_tensors(shape, shard);
    // The release lists the experts from the last to the first (spec 2.4).
    std::reverse(tensors.begin(), tensors.end());
    const std::string file = shard_name(shape, shard);
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

uint64_t payload_bytes(const Shape& shape) {
  uint64_t bytes = 0;
  for (int64_t shard = 1; shard <= shape.shards(); ++shard) {
    for (const Tensor& tensor : shard_tensors(shape, shard)) bytes += tensor.bytes();
  }
  return bytes;
}

namespace {

// Beyond the payload: headers, index, tokenizer.
constexpr uint64_t kSpareBytes = uint64_t{400} << 20;

Status check_room(const SliceOptions& options) {
  if (options.headers_only) return Ok{};
  // An int8 pack is at most half of the payload.
  const uint64_t payload = payload_bytes(options.shape);
  const uint64_t bytes = payload + (options.pack ? payload / 2 : 0) + kSpareBytes;
  std::error_code failed;
  const fs::space_info space = fs::space(options.directory, failed);
  if (failed || space.available >= bytes) return Ok{};
  return Error{Code::kBudget, options.directory.string() + " has room for " +
                                  std::to_string(space.available) + " bytes and the slice needs " +
                                  std::to_string(bytes) +
                                  ": lower --layers or --experts, or give --headers-only"};
}

}  // namespace

Status write_slice(const SliceOptions& options) {
  const fs::path& directory = options.directory;
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return write_error(directory);
  TRY_OK(check_room(options));
  TRY_OK(write_text(directory / kGeneratedMark, generated_mark(options.seed)));
  TRY_OK(write_text(directory / "config.json", dump_json(config_json(options.shape))));
  TRY_OK(write_text(directory / "generation_config.json",
                    R"({"max_length": 1048576, "eos_token_id": 163586})"));
  TRY_OK(write_text(directory / "tokenizer_config.json", dump_json(tokenizer_config_json())));
  TRY_OK(write_text(directory / "tiktoken.model", tiktoken_model()));
  TRY_OK(write_index(directory, options.shape, ""));
  PayloadWriter payload(options.seed);
  for (int64_t shard = 1; shard <= options.shape.shards(); ++shard) {
    const fs::path path = directory / shard_name(options.shape, shard);
    TRY_OK(write_shard(path, shard_tensors(options.shape, shard)));
    if (!options.headers_only) TRY_OK(payload.write(path));
  }
  if (!options.pack) return Ok{};
  TRY(const fs::path pack, payload.write_pack_head(directory));
  if (!options.headers_only) TRY_OK(payload.write(pack));
  return Ok{};
}

}  // namespace sluice::slice
