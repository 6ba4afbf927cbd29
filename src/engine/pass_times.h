// How long a pass takes, learnt from those that ran: T(rows) = a + b * rows, by least squares in
// which older passes fade. One owner.
#pragma once

#include <cstdint>

namespace sluice {

class PassTimes {
 public:
  void add(int64_t rows, double seconds);

  bool known() const { return weight_ > 0.0; }
  // 0 before the first pass.
  double predict_s(int64_t rows) const;
  // The most rows of a pass that should end within `seconds`, at least `rows_min`. `rows_min` while
  // nothing tells rows apart: all passes so far had one size.
  int64_t rows_within(double seconds, int64_t rows_min) const;

 private:
  struct Line {
    double base_s, row_s;  // neither below 0
  };
  Line line() const;

  // Faded sums over the passes: 1, x, y, x * x, x * y.
  double weight_ = 0.0, rows_ = 0.0, seconds_ = 0.0, rows_rows_ = 0.0, rows_seconds_ = 0.0;
};

}  // namespace sluice
