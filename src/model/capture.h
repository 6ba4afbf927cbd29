// Named tensors of one pass, for `run --dump` and the golden tests; names and shapes are those of the
// goldens (models/tiny-k3). One owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace sluice {

struct CapturedTensor {
  std::vector<int64_t> shape;
  std::vector<float> floats;    // one of the two is used
  std::vector<int64_t> integers;
};

class Capture {
 public:
  // The floats of `name`, created zero-filled with `shape` at the first call.
  float* floats(const std::string& name, std::vector<int64_t> shape);
  int64_t* integers(const std::string& name, std::vector<int64_t> shape);
  const std::map<std::string, CapturedTensor>& tensors() const { return tensors_; }
  // The tensors as a safetensors file image (F32, I64), names sorted.
  std::string safetensors() const;

 private:
  std::map<std::string, CapturedTensor> tensors_;
};

}  // namespace sluice
