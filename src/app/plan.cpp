// sluice plan: the memory plan line by line, what a token costs the drive, and the predicted speed.
#include <optional>
#include <string>

#include "app/commands.h"
#include "app/forecast_text.h"
#include "app/output.h"
#include "base/json.h"
#include "base/size.h"
#include "engine/plan.h"

namespace sluice {
namespace {

constexpr size_t kFingerprintShown = 16;  // contracts 3: the digits that name things

std::string bytes_text(double bytes) { return format_size(static_cast<uint64_t>(bytes)); }

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

std::string report_text(const PlanReport& report, const PlanOptions& options,
                        const std::optional<Machine>& machine) {
  const EnginePlan& plan = report.plan;
  const MemoryPlan& memory = plan.memory;
  std::string text;
  text += report_line("model", report.directory);
  text += report_line("fingerprint", report.fingerprint.substr(0, kFingerprintShown));
  text += report_line("weights", weights_text(report));
  text += report_line("spine", plan.spine() + ", " + plan.spine_reason);
  text += report_line("compute", std::string(plan.table->name) + ", " + std::to_string(plan.threads) +
                              (plan.threads == 1 ? " thread" : " threads"));
  text += report_line("context", std::to_string(plan.context_positions) + " positions of the model's " +
                              std::to_string(report.max_positions));
  text += "\n" + memory.text();
  text += "the floor (least --ram) is " + format_size(memory.floor_bytes) + ", " +
          std::to_string(memory.floor_bytes) + " bytes\n\n";
  text += report_line("pinned", std::to_string(memory.n_pinned()) + " of " +
                             std::to_string(report.n_layers) + " layers");
  text += report_line("rows per pass", std::to_string(memory.rows_max));
  text += report_line("read per token", token_text(report));
  if (machine) return text + forecast_text(report, options, *machine);
  return text + report_line("predicted",
                            "unknown without the drive's rate: give --disk, e.g. --disk 7.3GB/s");
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

Json report_json(const PlanReport& report, const PlanOptions& options,
                 const std::optional<Machine>& machine) {
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
               {"checkpoint", sizes_json(report.sizes)}};
  if (machine) json["predicted"] = forecast_json(report, options, *machine);
  return json;
}

}  // namespace

Result<int> plan_command(const PlanOptions& options) {
  TRY(const PlanReport report, make_plan_report(options.engine));
  std::optional<Machine> machine;
  if (options.disk_bytes_s) machine = described_machine(report, options);
  TRY_OK(write_out(options.json ? dump_json(report_json(report, options, machine)) + "\n"
                                : report_text(report, options, machine)));
  return kExitDone;
}

}  // namespace sluice
