#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

const char* code_name(Code code) {
  switch (code) {
    case Code::kIo: return "io";
    case Code::kCorrupt: return "corrupt";
    case Code::kBudget: return "budget";
    case Code::kUnsupported: return "unsupported";
    case Code::kCancelled: return "cancelled";
    case Code::kInvalid: return "invalid";
  }
  return "unknown";
}

void check_failed(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
  std::abort();
}

}  // namespace sluice
