// The middle of a sample and how sure it is. Pure functions; thread-safe.
#pragma once

#include <span>

namespace sluice {

struct Interval {
  double median = 0, lo = 0, hi = 0;
};

double median(std::span<const double> sample);

// The median and its 90 % interval: the percentile bootstrap (Efron 1979) of 2,000 resamples, drawn
// by a fixed seed, so one sample has one interval. `sample` is not empty.
Interval bootstrap_median(std::span<const double> sample);

}  // namespace sluice
