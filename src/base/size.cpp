#include "base/size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> kUnits = {{{"", 1.0},
                                          {"B", 1.0},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0}}};
constexpr double kTebibyte = 1099511627776.0;

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  const Error bad{Code::kInvalid, "size \"" + std::string(text) +
                                      "\" is not a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number,
                                            std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return bad;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double scale = unit == "TiB" ? kTebibyte : 0.0;
  for (const Unit& known : kUnits) {
    if (unit == known.name) scale = known.bytes;
  }
  const double bytes = number * scale;
  if (scale == 0.0 || bytes > 9e18) return bad;
  return static_cast<uint64_t>(bytes);
}

std::string format_size(uint64_t bytes) {
  constexpr std::array<const char*, 6> kNames = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1000.0;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.*f %s", digits, value, kNames[unit]);
  return text.data();
}

}  // namespace sluice
