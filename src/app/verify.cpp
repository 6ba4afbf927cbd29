// sluice verify --anchors: the weights on disk against the published numbers of the released model,
// layer by layer, as far as its shards are there.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/output.h"
#include "engine/anchors.h"

namespace sluice {
namespace {

// One number; the buffer holds any double printed by %f.
std::string formatted(const char* format, double value) {
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string line_text(const AnchorLine& line) {
  constexpr size_t kNameWidth = 24;
  std::string text = line.name;
  text.resize(std::max(text.size(), kNameWidth), ' ');
  text += " published " + formatted("%14.6f", line.published) + "  computed " +
          formatted("%14.6f", line.computed);
  if (line.pass()) return text + "  pass\n";
  return text + "  FAIL, off by " + formatted("%.2e", line.difference) + ", tolerance " +
         formatted("%.0e", line.tolerance) + "\n";
}

std::string report_text(const AnchorReport& report) {
  std::string text;
  int64_t n_failed = 0;
  for (const AnchorLine& line : report.lines) {
    text += line_text(line);
    n_failed += line.pass() ? 0 : 1;
  }
  text += "checked " + std::to_string(report.n_layers) + " of " +
          std::to_string(report.n_layers_configured) + " layers";
  text += report.n_layers == report.n_layers_configured
              ? " and the logits"
              : "; logits need all of them and all their shards";
  text += ". Tolerance: " + formatted("%.0e", kPrefixTolerance) + " of a maximum, " +
          formatted("%.0e", kLogitTolerance) + " for a logit, none for an argmax.\n";
  if (n_failed == 0) return text + "all " + std::to_string(report.lines.size()) + " pass\n";
  return text + std::to_string(n_failed) + " of " + std::to_string(report.lines.size()) +
         " FAIL: the weights, or this build, are not right\n";
}

}  // namespace

Result<int> verify_command(const VerifyOptions& options) {
  install_interrupt();
  const auto report =
      check_anchors(options.engine, options.n_layers_max, k3_anchors(), &interrupt_flag());
  if (!report.ok() && report.error().code == Code::kCancelled) return kExitInterrupted;
  TRY_OK(report);
  TRY_OK(write_out(report_text(report.value())));
  return report.value().pass() ? kExitDone : kExitFailed;
}

}  // namespace sluice
