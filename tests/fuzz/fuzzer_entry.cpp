// libFuzzer's entry to the target that the build names in SLUICE_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  sluice::SLUICE_FUZZ_TARGET({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
