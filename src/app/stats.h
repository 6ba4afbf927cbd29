// What an answer cost, for people. Pure, but for print_stats.
#pragma once

#include <string>

#include "engine/engine.h"

namespace sluice {

// Three lines, four of an emulated drive.
std::string stats_text(const GenerateStats& stats, const Engine& engine);
// The same on standard error.
void print_stats(const GenerateStats& stats, const Engine& engine);

}  // namespace sluice
