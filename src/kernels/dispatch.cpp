#include "kernels/dispatch.h"

#include <array>
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

// What AVX-512 needs and this machine or build lacks, as words for an error.
std::string avx512_missing() {
#if defined(__x86_64__)
  // The builtins also ask the OS (XGETBV) whether it saves the zmm registers.
  std::string missing;
  const auto need = [&missing](bool present, const char* feature) {
    if (!present) missing += (missing.empty() ? "" : ", ") + std::string(feature);
  };
  __builtin_cpu_init();
  need(__builtin_cpu_supports("avx512f"), "avx512f");
  need(__builtin_cpu_supports("avx512bw"), "avx512bw");
  need(__builtin_cpu_supports("avx512vl"), "avx512vl");
  need(__builtin_cpu_supports("avx512dq"), "avx512dq");
  need(__builtin_cpu_supports("fma"), "fma");
  return missing;
#else
  return "an x86-64 build";
#endif
}

// Slowest first.
std::array<Candidate, 2> candidates() {
  return {Candidate{"scalar", &scalar_table(), ""},
          Candidate{"avx512", avx512_table(), avx512_missing()}};
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
