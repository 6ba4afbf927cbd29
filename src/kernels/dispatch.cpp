#include "kernels/dispatch.h"

#include <array>
#include <initializer_list>
#include <string>

#include "kernels/tables.h"

namespace sluice {

namespace {

// One table that --isa may name. `missing` is empty when this CPU (and its OS) runs it.
struct Candidate {
  std::string_view name;
  const KernelTable* table;
  std::string missing;
};

#if defined(__x86_64__)

// The words of `features` that are absent, as words for an error.
struct Feature {
  const char* name;
  bool present;
};
std::string absent(std::initializer_list<Feature> features) {
  std::string names;
  for (const Feature& feature : features) {
    if (!feature.present) names += (names.empty() ? "" : ", ") + std::string(feature.name);
  }
  return names;
}

// What a table needs and this machine or build lacks. The builtins also ask the OS (XGETBV) whether
// it saves the registers: ymm for avx2 and fma, zmm for avx512*.
std::string avx2_missing() {
  __builtin_cpu_init();
  return absent(
      {{"avx2", __builtin_cpu_supports("avx2") != 0}, {"fma", __builtin_cpu_supports("fma") != 0}});
}
std::string avx512_missing() {
  __builtin_cpu_init();
  return absent({{"avx512f", __builtin_cpu_supports("avx512f") != 0},
                 {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
                 {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
                 {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
                 {"fma", __builtin_cpu_supports("fma") != 0}});
}

#else

std::string avx2_missing() { return "an x86-64 CPU"; }
std::string avx512_missing() { return "an x86-64 CPU"; }

#endif

// A file of CMake's choice holds the NEON table or none: every aarch64 CPU runs it.
std::string neon_missing() { return neon_table() == nullptr ? "an aarch64 CPU" : ""; }

// Slowest first.
std::array<Candidate, 4> candidates() {
  return {Candidate{"scalar", &scalar_table(), ""}, Candidate{"avx2", avx2_table(), avx2_missing()},
          Candidate{"avx512", avx512_table(), avx512_missing()},
          Candidate{"neon", neon_table(), neon_missing()}};
}

}  // namespace

std::vector<const KernelTable*> supported_tables() {
  std::vector<const KernelTable*> tables;
  for (const Candidate& candidate : candidates()) {
    if (candidate.missing.empty()) tables.push_back(candidate.table);
  }
  return tables;
}

Result<const KernelTable*> choose_table(std::string_view isa) {
  if (isa == "auto") return supported_tables().back();
  std::string names = "auto";
  for (const Candidate& candidate : candidates()) {
    if (candidate.name != isa) {
      names += ", " + std::string(candidate.name);
    } else if (candidate.missing.empty()) {
      return candidate.table;
    } else {
      return Error{Code::kUnsupported, "--isa " + std::string(isa) + " needs " + candidate.missing +
                                           ", which this machine lacks: use --isa auto"};
    }
  }
  return Error{Code::kInvalid,
               "--isa " + std::string(isa) + " is not a kernel table: use one of " + names};
}

}  // namespace sluice
