// How an engine is opened: what the common command line options say. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "format/generated_model.h"
#include "io/file.h"
#include "model/model.h"

namespace sluice {

enum class SpineChoice { kAuto, kBf16, kInt8 };

struct EngineOptions {
  std::filesystem::path model;  // a Hugging Face snapshot directory
  uint64_t ram_bytes = 0;       // 0: 80 % of the least limit that the host sets
  int threads = 0;              // 0: the physical cores that this process may use
  std::string isa = "auto";
  Direct direct = Direct::kAuto;
  std::optional<uint64_t> expert_cache_bytes;
  int64_t context_positions = 0;  // of one sequence; 0: auto, see plan_engine
  int64_t sequences = 1;          // at once (--parallel); 0: auto, see plan_engine
  int64_t score_rows = 0;         // prompt rows of a pass whose logits may be wanted too
  float qkv_norm_eps = kQkvNormEps;
  SpineChoice spine = SpineChoice::kAuto;
  std::filesystem::path work_dir;    // --work-dir; empty: see work_directory
  std::filesystem::path cache_home;  // the user's cache directory; empty: there is none
  // --emulate-drive; takes the place of open_file.
  std::optional<EmulatedDrives> emulated_drives;
  OpenFile open_file = File::open;  // for the model's shards and its int8 pack
};

}  // namespace sluice
