// The options of the engine, which most commands share.
#include <cstdlib>
#include <filesystem>

#include "app/option_values.h"
#include "app/options_parser.h"
#include "base/size.h"

namespace sluice {
namespace {

// The user's cache directory, or nothing when the environment names none.
std::filesystem::path cache_home() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/')
    return cache;  // a relative one is to be ignored (XDG base directories)
  const char* home = std::getenv("HOME");
  if (home && *home) return std::filesystem::path(home) / ".cache";
  return {};
}

}  // namespace

void add_files(Parser& parser, EngineOptions& engine) {
  engine.cache_home = cache_home();
  parser.value("MODEL", "Snapshot directory (default: the bundled tiny-k3)",
               [&engine](const std::string& text) -> Status {
                 if (text.empty()) return usage("MODEL is an empty path; name a directory");
                 engine.model = text;
                 return Ok{};
               });
  parser.value("--work-dir", "Directory for what is made of the model (default: MODEL/.sluice)",
               [&engine](const std::string& text) -> Status {
                 if (text.empty()) return usage("--work-dir is an empty path; name a directory");
                 engine.work_dir = text;
                 return Ok{};
               });
  parser.number<int>("--threads", engine.threads, 1, 1024,
                     "Compute threads (default: the physical cores)");
  parser.action("--no-direct", "Read through the page cache",
                [&engine] { engine.direct = Direct::kOff; });
}

void add_engine(Parser& parser, EngineOptions& engine) {
  add_files(parser, engine);
  parser.size("--ram", "Memory to use, e.g. 64GiB (default: 80 % of the host's limit)",
              [&engine](const std::string& text) -> Status {
                TRY(engine.ram_bytes, parse_size(text));
                if (engine.ram_bytes == 0) return usage("--ram must be above 0");
                return Ok{};
              });
  parser.value("--spine", "Format of the resident weights: auto, bf16, int8",
               [&engine](const std::string& text) { return parse_spine(text, engine.spine); });
  parser.value("--isa", "Kernel table: auto, scalar, avx2, avx512, neon",
               [&engine](const std::string& text) { return parse_isa(text, engine.isa); });
  parser.size("--expert-cache", "Memory for routed experts, e.g. 20GiB (default: what is left)",
              [&engine](const std::string& text) -> Status {
                TRY(engine.expert_cache_bytes, parse_size(text));
                return Ok{};
              });
  parser.number<int64_t>("--context", engine.context_positions, 1, kCountMax,
                         "Positions that prompt and reply may take (default: by memory)");
  parser.number<float>("--qkv-norm-eps", engine.qkv_norm_eps, 1e-12f, 0.1f,
                       "eps of the q_a and kv_a norms (default: 1e-5)");
}

void add_emulation(Parser& parser, EngineOptions& engine) {
  parser.value("--emulate-drive",
               "RATE[,latency=80us][,drives=N]: generated weights from drives that do not exist",
               [&engine](const std::string& text) -> Status {
                 TRY(engine.emulated_drives, parse_emulated_drives(text));
                 return Ok{};
               })
      ->type_name("RATE");
}

}  // namespace sluice
