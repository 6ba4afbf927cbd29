#include "app/stats.h"

#include <array>
#include <cstdio>

#include "base/size.h"

namespace sluice {
namespace {

// A number printed by %f or %lld fits.
template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
  std::array<char, 512> text;
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

}  // namespace

std::string stats_text(const GenerateStats& stats, const Engine& engine) {
  const EnginePlan& plan = engine.plan();
  std::string text = "prompt " + std::to_string(stats.prompt_tokens) + " tokens";
  if (stats.reused_tokens > 0) {
    text += " (" + std::to_string(stats.reused_tokens) + " of them known)";
  }
  text += formatted(" in %.3f s, first token after %.3f s, %lld new tokens, %.2f tokens/s\n",
                    stats.prefill_s, stats.ttft_s, static_cast<long long>(stats.new_tokens),
                    stats.decode_tok_s);
  text += "read " + format_size(stats.bytes_read);
  text += formatted(" (%.2f GB/s), experts %llu found in memory and %llu read\n", stats.read_gb_s(),
                    static_cast<unsigned long long>(stats.expert_hits),
                    static_cast<unsigned long long>(stats.expert_misses));
  text += "spine " + plan.spine() + " (" + std::to_string(plan.memory.n_pinned()) + " of " +
          std::to_string(plan.memory.layer_pinned.size()) + " layers pinned), " + plan.table->name +
          ", threads " + std::to_string(plan.threads) + ", ram " +
          format_size(plan.memory.ram_bytes) + ", reads " +
          (engine.direct() ? "direct" : "through the page cache") + "\n";
  if (engine.emulated() != nullptr) {
    const EmulatedDrive::Stats drive = engine.emulated()->stats();
    text += formatted("emulated drive busy %.3f s; %llu of %llu reads were generated late, ",
                      drive.busy_s, static_cast<unsigned long long>(drive.late_reads),
                      static_cast<unsigned long long>(drive.reads));
    text += formatted("by %.3f s in all\n", drive.late_s);
  }
  return text;
}

void print_stats(const GenerateStats& stats, const Engine& engine) {
  std::fputs(stats_text(stats, engine).c_str(), stderr);
}

}  // namespace sluice
