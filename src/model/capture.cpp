#include "model/capture.h"

#include <cstring>

#include "base/json.h"

namespace sluice {
namespace {

int64_t count(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

}  // namespace

float* Capture::floats(const std::string& name, std::vector<int64_t> shape) {
  CapturedTensor& tensor = tensors_[name];
  if (tensor.floats.empty()) tensor.floats.resize(static_cast<size_t>(count(shape)));
  tensor.shape = std::move(shape);
  CHECK(count(tensor.shape) == static_cast<int64_t>(tensor.floats.size()));
  return tensor.floats.data();
}

int64_t* Capture::integers(const std::string& name, std::vector<int64_t> shape) {
  CapturedTensor& tensor = tensors_[name];
  if (tensor.integers.empty()) tensor.integers.resize(static_cast<size_t>(count(shape)));
  tensor.shape = std::move(shape);
  CHECK(count(tensor.shape) == static_cast<int64_t>(tensor.integers.size()));
  return tensor.integers.data();
}

std::string Capture::safetensors() const {
  Json header = Json::object();
  std::string payload;
  for (const auto& [name, tensor] : tensors_) {
    const bool integral = !tensor.integers.empty();
    const size_t begin = payload.size();
    if (integral) {
      payload.append(reinterpret_cast<const char*>(tensor.integers.data()),
                     tensor.integers.size() * sizeof(int64_t));
    } else {
      payload.append(reinterpret_cast<const char*>(tensor.floats.data()),
                     tensor.floats.size() * sizeof(float));
    }
    header[name] = {{"dtype", integral ? "I64" : "F32"},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, payload.size()}}};
  }
  std::string text = dump_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();
  std::string image(sizeof(header_bytes), '\0');
  std::memcpy(image.data(), &header_bytes, sizeof(header_bytes));
  return image + text + payload;
}

}  // namespace sluice
