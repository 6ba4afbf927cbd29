// sluice plan: the memory plan line by line, what a token costs the drive, and the predicted speed.
#include <array>
#include <cstdio>
#include <string>

#include "app/commands.h"
#include "app/output.h"
#include "base/json.h"
#include "base/size.h"
#include "engine/plan.h"

namespace sluice {
namespace {

constexpr size_t kFingerprintShown = 16;  // contracts 3: the digits that name things

std::string fixed(double value, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string bytes_text(double bytes) { return format_size(static_cast<uint64_t>(bytes)); }

// One "name  value" line.
std::string line(const std::string& name, const std::string& value) {
  constexpr size_t kNameWidth = 16;
  return name + std::string(kNameWidth - name.size(), ' ') + value + "\n";
}

std::string weights_text(const PlanReport& report) {
  std::string text = "spine " + format_size(report.spine_bytes) + " in " + report.plan.spine();
  if (report.n_experts == 0) return text + ", no routed experts";
  return text + ", " + std::to_string(report.n_experts) + " routed experts of " +
         format_size(report.expert_record_bytes) + " (" + format_size(report.expert_bytes) + ")";
}

std::string token_text(const PlanReport& report) {
  std::string text = "spine " + format_size(report.spine_streamed_bytes);
  if (report.experts_per_token > 0) {
    text += " + " + std::to_string(report.experts_per_token) + " experts of " +
            format_size(report.expert_record_bytes) + " less those found in memory";
  }
  return text + " = at most " + bytes_text(report.bytes_per_token(0.0));
}

// Three or so digits that matter.
std::string rounded(double value) {
  return fixed(value, value >= 100 ? 0 : value >= 1 ? 2 : value >= 0.01 ? 4 : 6);
}

// The bound T >= bytes / rate; the compute time of a pass is not part of it.
std::string predicted_text(const PlanReport& report, double bytes_s, double hit,
                           const std::string& why) {
  const double bytes = report.bytes_per_token(hit);
  if (bytes <= 0) return "the drive sets no limit once every expert was read: all weights fit";
  return "at least " + rounded(bytes / bytes_s) + " s per token, at most " +
         rounded(bytes_s / bytes) + " tokens/s: " + bytes_text(bytes) + why;
}

std::string prediction_text(const PlanReport& report, const PlanOptions& options) {
  if (!options.disk_bytes_s) {
    return line("predicted", "unknown without the drive's rate: give --disk, e.g. --disk 7.3GB/s");
  }
  const auto bytes_s = static_cast<double>(*options.disk_bytes_s);
  const double hit = report.uniform_hit();
  const bool partial = report.experts_per_token > 0 && hit < 1.0;
  const std::string share =
      " with " + fixed(hit * 100, 1) + " % of its experts found in memory, the share that fits";
  std::string text = line("drive", format_size(*options.disk_bytes_s) + "/s as given");
  text += line("predicted", predicted_text(report, bytes_s, hit, partial ? share : ""));
  if (partial) {
    text += line("or", predicted_text(report, bytes_s, 0.0, " with no expert found in memory"));
  }
  return text;
}

std::string report_text(const PlanReport& report, const PlanOptions& options) {
  const EnginePlan& plan = report.plan;
  const MemoryPlan& memory = plan.memory;
  std::string text;
  text += line("model", report.directory);
  text += line("fingerprint", report.fingerprint.substr(0, kFingerprintShown));
  text += line("weights", weights_text(report));
  text += line("spine", plan.spine() + ", " + plan.spine_reason);
  text += line("compute", std::string(plan.table->name) + ", " + std::to_string(plan.threads) +
                              (plan.threads == 1 ? " thread" : " threads"));
  text += line("context", std::to_string(plan.context_positions) + " positions of the model's " +
                              std::to_string(report.max_positions));
  text += "\n" + memory.text();
  text += "the floor (least --ram) is " + format_size(memory.floor_bytes) + ", " +
          std::to_string(memory.floor_bytes) + " bytes\n\n";
  text += line("pinned", std::to_string(memory.n_pinned()) + " of " +
                             std::to_string(report.n_layers) + " layers");
  text += line("rows per pass", std::to_string(memory.rows_max));
  text += line("read per token", token_text(report));
  return text + prediction_text(report, options);
}

Json sizes_json(const CheckpointSizes& sizes) {
  return {{"tensors", sizes.n_tensors},
          {"unclaimed_tensors", sizes.n_unclaimed},
          {"spine_bytes", sizes.spine_bytes},
          {"layer_bytes", sizes.layer_bytes},
          {"embed_head_bytes", sizes.embed_head_bytes},
          {"kda_state_bytes", sizes.kda_state_bytes},
          {"latent_bytes_per_token", sizes.latent_bytes_per_token}};
}

Json report_json(const PlanReport& report, const PlanOptions& options) {
  const EnginePlan& plan = report.plan;
  Json claims = Json::array();
  for (const Claim& claim : plan.memory.claims) {
    claims.push_back({{"name", claim.name}, {"bytes", claim.bytes}});
  }
  Json json = {{"model", report.directory},
               {"fingerprint", report.fingerprint.substr(0, kFingerprintShown)},
               {"spine", plan.spine()},
               {"spine_reason", plan.spine_reason},
               {"isa", plan.table->name},
               {"threads", plan.threads},
               {"ram", plan.memory.ram_bytes},
               {"total", plan.memory.total_bytes()},
               {"floor", plan.memory.floor_bytes},
               {"claims", claims},
               {"layers", report.n_layers},
               {"layers_pinned", plan.memory.n_pinned()},
               {"experts", report.n_experts},
               {"expert_slots", plan.memory.expert_slots},
               {"rows_max", plan.memory.rows_max},
               {"context", plan.context_positions},
               {"max_positions", report.max_positions},
               {"spine_bytes", report.spine_bytes},
               {"expert_bytes", report.expert_bytes},
               {"expert_record_bytes", report.expert_record_bytes},
               {"spine_streamed_bytes", report.spine_streamed_bytes},
               {"experts_per_token", report.experts_per_token},
               {"bytes_per_token_no_hits", report.bytes_per_token(0.0)},
               {"uniform_hit", report.uniform_hit()},
               {"checkpoint", sizes_json(report.sizes)}};
  if (options.disk_bytes_s) {
    const auto bytes_s = static_cast<double>(*options.disk_bytes_s);
    json["disk_bytes_s"] = *options.disk_bytes_s;
    json["predicted_s_per_token_no_hits"] = report.bytes_per_token(0.0) / bytes_s;
    json["predicted_s_per_token_uniform"] = report.bytes_per_token(report.uniform_hit()) / bytes_s;
  }
  return json;
}

}  // namespace

Result<int> plan_command(const PlanOptions& options) {
  TRY(const PlanReport report, make_plan_report(options.engine));
  TRY_OK(write_out(options.json ? dump_json(report_json(report, options)) + "\n"
                                : report_text(report, options)));
  return kExitDone;
}

}  // namespace sluice
