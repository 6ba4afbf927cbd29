// Writes and edits safetensors files for tests. Aborts on failure.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

struct TestTensor {
  std::string name;
  std::string dtype;  // "BF16", "F32", "U8"
  std::vector<int64_t> shape;
  std::string payload = {};  // zeros of the right size when empty
};

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK(out.good());
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in.good());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Any header text before any payload: for damaged files.
inline void write_raw_safetensors(const std::filesystem::path& path, std::string_view header,
                                  std::string_view payload) {
  const uint64_t header_bytes = header.size();
  std::string bytes(sizeof(header_bytes), '\0');
  std::memcpy(bytes.data(), &header_bytes, sizeof(header_bytes));
  write_file(path, bytes.append(header).append(payload));
}

inline void write_safetensors(const std::filesystem::path& path,
                              const std::vector<TestTensor>& tensors) {
  Json header = Json::object();
  std::string payload;
  for (const TestTensor& tensor : tensors) {
    size_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "BF16" ? 2 : 1;
    for (const int64_t dim : tensor.shape) bytes *= static_cast<size_t>(dim);
    CHECK(tensor.payload.empty() || tensor.payload.size() == bytes);
    const size_t begin = payload.size();
    payload += tensor.payload.empty() ? std::string(bytes, '\0') : tensor.payload;
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, payload.size()}}};
  }
  write_raw_safetensors(path, dump_json(header), payload);
}

struct RawSafetensors {
  Json header;
  std::string payload;
};

inline RawSafetensors read_raw_safetensors(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  uint64_t header_bytes = 0;
  CHECK(bytes.size() >= sizeof(header_bytes));
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  Result<Json> header = parse_json(bytes.substr(sizeof(header_bytes), header_bytes), path.string());
  CHECK(header.ok());
  return {std::move(header).value(), bytes.substr(sizeof(header_bytes) + header_bytes)};
}

// Rewrites the file with the header (and payload) as `edit` leaves them.
inline void edit_safetensors(const std::filesystem::path& path,
                             const std::function<void(RawSafetensors&)>& edit) {
  RawSafetensors raw = read_raw_safetensors(path);
  edit(raw);
  write_raw_safetensors(path, dump_json(raw.header), raw.payload);
}

inline void edit_json(const std::filesystem::path& path, const std::function<void(Json&)>& edit) {
  Result<Json> json = parse_json(read_file(path), path.string());
  CHECK(json.ok());
  edit(json.value());
  write_file(path, dump_json(json.value()));
}

}  // namespace sluice
