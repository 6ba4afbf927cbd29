// What `sluice plan` predicts of a machine, for people and as JSON. Pure functions.
#pragma once

#include <string>

#include "app/options.h"
#include "base/json.h"
#include "engine/forecast.h"
#include "engine/plan.h"

namespace sluice {

// The machine that the options describe: measures the arithmetic of this one, so it takes a moment.
// The options have a drive rate.
Machine described_machine(const PlanReport& report, const PlanOptions& options);

// Lines "name  value": decode, prompts, batches and long contexts, each with what binds.
std::string forecast_text(const PlanReport& report, const PlanOptions& options,
                          const Machine& machine);
Json forecast_json(const PlanReport& report, const PlanOptions& options, const Machine& machine);

// One "name  value" line of the report.
std::string report_line(const std::string& name, const std::string& value);

}  // namespace sluice
