#include "app/forecast_text.h"

#include <array>
#include <cstdio>
#include <vector>

#include "base/size.h"

namespace sluice {
namespace {

constexpr std::array<int64_t, 2> kPrompts = {512, 2048};
constexpr std::array<int64_t, 3> kBatches = {4, 16, 64};
constexpr std::array<int64_t, 2> kPositions = {32768, 131072};

// Three or so digits that matter.
std::string rounded(double value) {
  const int digits = value >= 100 ? 0 : value >= 1 ? 2 : value >= 0.01 ? 4 : 6;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string bytes_text(double bytes) { return format_size(static_cast<uint64_t>(bytes)); }

double decode_hit(const PlanReport& report, const PlanOptions& options) {
  return options.hit.value_or(expected_hit(report.work.experts_resident));
}

PassForecast decode(const PlanReport& report, const Machine& machine, double hit,
                    int64_t position) {
  return forecast_pass(
      report.work, machine,
      {.position = position,
       .distinct_experts = static_cast<double>(report.work.n_experts_per_token),
       .hit = hit});
}

// One row each of `n_texts` requests.
PassForecast batch(const PlanReport& report, const Machine& machine, int64_t n_texts, double hit) {
  return forecast_pass(report.work, machine,
                       {.n_rows = n_texts,
                        .n_sequences = n_texts,
                        .n_logits = n_texts,
                        .distinct_experts = distinct_experts_of_texts(report.work, n_texts),
                        .hit = hit});
}

std::string pass_text(const PassForecast& pass) {
  return rounded(1.0 / pass.seconds) + " tokens/s, " + rounded(pass.seconds) + " s a token (reads " +
         bytes_text(pass.read_bytes) + " in " + rounded(pass.drive_s) + " s, arithmetic " +
         rounded(pass.compute_s) + " s): bound by " + pass.binds();
}

Json pass_json(const PassForecast& pass, int64_t n_tokens) {
  return {{"s", pass.seconds},
          {"tok_s", static_cast<double>(n_tokens) / pass.seconds},
          {"drive_s", pass.drive_s},
          {"compute_s", pass.compute_s},
          {"read_bytes", pass.read_bytes},
          {"binds", pass.binds()}};
}

}  // namespace

std::string report_line(const std::string& name, const std::string& value) {
  constexpr size_t kNameWidth = 16;
  return name + std::string(kNameWidth - name.size(), ' ') + value + "\n";
}

Machine described_machine(const PlanReport& report, const PlanOptions& options) {
  Machine machine;
  machine.rates = measure_compute_rates(*report.plan.table, report.plan.threads);
  machine.drive_bytes_s =
      static_cast<double>(*options.disk_bytes_s) * static_cast<double>(options.drives);
  return machine;
}

std::string forecast_text(const PlanReport& report, const PlanOptions& options,
                          const Machine& machine) {
  const double hit = decode_hit(report, options);
  std::string text = report_line(
      "predicted for", format_size(static_cast<uint64_t>(machine.drive_bytes_s)) + "/s of " +
                           std::to_string(options.drives) +
                           (options.drives == 1 ? " drive" : " drives") +
                           " as given, arithmetic as measured here just now" +
                           (report.work.n_experts == 0
                                ? ""
                                : ", " + rounded(hit * 100) + " % of a token's experts in memory" +
                                      (options.hit ? " as given" : " (published for ordinary text)")));
  text += report_line("decode", pass_text(decode(report, machine, hit, 0)));
  if (hit > 0) text += report_line("  from cold", pass_text(decode(report, machine, 0, 0)));
  for (const int64_t n : kPrompts) {
    if (n > report.max_positions) continue;
    const double s = forecast_prompt(report.work, machine, n);
    text += report_line("prompt of " + std::to_string(n),
                        rounded(s) + " s, " + rounded(static_cast<double>(n) / s) + " tokens/s, in " +
                            std::to_string((n + report.work.rows_max - 1) / report.work.rows_max) +
                            " sweeps");
  }
  for (const int64_t n : kBatches) {
    const PassForecast pass = batch(report, machine, n, hit);
    text += report_line("batch of " + std::to_string(n),
                        rounded(static_cast<double>(n) / pass.seconds) + " tokens/s together, " +
                            rounded(pass.seconds) + " s a pass: bound by " + pass.binds());
  }
  for (const int64_t position : kPositions) {
    if (position > report.max_positions) continue;
    text += report_line("at " + std::to_string(position),
                        pass_text(decode(report, machine, hit, position)));
  }
  return text;
}

Json forecast_json(const PlanReport& report, const PlanOptions& options, const Machine& machine) {
  const double hit = decode_hit(report, options);
  Json json = {{"drive_bytes_s", machine.drive_bytes_s},
               {"drives", options.drives},
               {"hit", hit},
               {"decode", pass_json(decode(report, machine, hit, 0), 1)},
               {"decode_cold", pass_json(decode(report, machine, 0, 0), 1)}};
  for (const int64_t n : kPrompts) {
    const double s = forecast_prompt(report.work, machine, n);
    json["prompt"][std::to_string(n)] = {{"s", s}, {"tok_s", static_cast<double>(n) / s}};
  }
  for (const int64_t n : kBatches) {
    json["batch"][std::to_string(n)] = pass_json(batch(report, machine, n, hit), n);
  }
  for (const int64_t position : kPositions) {
    json["at_position"][std::to_string(position)] =
        pass_json(decode(report, machine, hit, position), 1);
  }
  return json;
}

}  // namespace sluice
