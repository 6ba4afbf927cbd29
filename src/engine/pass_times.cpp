#include "engine/pass_times.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr double kFade = 0.95;      // of each earlier pass: the last 20 count most
constexpr double kRowsMax = 1e9;    // what "without bound" is
constexpr double kSameRows = 1e-9;  // variance over square: all passes had one size

}  // namespace

void PassTimes::add(int64_t rows, double seconds) {
  const auto x = static_cast<double>(rows);
  for (double* sum : {&weight_, &rows_, &seconds_, &rows_rows_, &rows_seconds_}) *sum *= kFade;
  weight_ += 1.0;
  rows_ += x;
  seconds_ += seconds;
  rows_rows_ += x * x;
  rows_seconds_ += x * seconds;
}

PassTimes::Line PassTimes::line() const {
  if (!known()) return {0.0, 0.0};
  const double mean_rows = rows_ / weight_;
  const double mean_s = seconds_ / weight_;
  const double variance = rows_rows_ / weight_ - mean_rows * mean_rows;
  if (variance <= kSameRows * mean_rows * mean_rows) return {mean_s, 0.0};
  const double row_s = std::max(0.0, (rows_seconds_ / weight_ - mean_rows * mean_s) / variance);
  // A line that meets the axis below 0 is drawn through 0 instead.
  const double base_s = mean_s - row_s * mean_rows;
  return base_s >= 0.0 ? Line{base_s, row_s} : Line{0.0, mean_s / mean_rows};
}

double PassTimes::predict_s(int64_t rows) const {
  const Line line = this->line();
  return line.base_s + line.row_s * static_cast<double>(rows);
}

int64_t PassTimes::rows_within(double seconds, int64_t rows_min) const {
  const Line line = this->line();
  if (line.row_s <= 0.0) return rows_min;
  const double rows = std::floor((seconds - line.base_s) / line.row_s);
  return std::max(rows_min, static_cast<int64_t>(std::clamp(rows, 0.0, kRowsMax)));
}

}  // namespace sluice
