#include "base/bootstrap.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kResamples = 2000;
constexpr size_t kBelow = kResamples / 20;  // 5 % on each side

double median_of(std::vector<double>& values) {
  const size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double median(std::span<const double> sample) {
  CHECK(!sample.empty());
  std::vector<double> values(sample.begin(), sample.end());
  return median_of(values);
}

Interval bootstrap_median(std::span<const double> sample) {
  CHECK(!sample.empty());
  std::mt19937_64 random(1);
  std::vector<double> medians;
  std::vector<double> values(sample.size());
  for (size_t i = 0; i < kResamples; ++i) {
    // The remainder's bias is below 1e-15 for samples that fit in memory.
    for (double& value : values) value = sample[random() % sample.size()];
    medians.push_back(median_of(values));
  }
  std::ranges::sort(medians);
  return {.median = median(sample),
          .lo = medians[kBelow],
          .hi = medians[kResamples - 1 - kBelow]};
}

}  // namespace sluice
