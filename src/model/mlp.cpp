#include "model/mlp.h"

namespace sluice {

void glu(const Pass& pass, Rows gate, ConstRows up, int64_t width) {
  const Config& c = pass.config;
  const SituBetas betas{.beta = c.situ_beta,
                        .linear_beta = c.situ_linear_beta.value_or(1.0f),
                        .has_linear = c.situ_linear_beta.has_value()};
  for_each_row(pass.compute, gate.n, [&](int64_t row) {
    if (c.activation == Activation::kSitu) {
      pass.k().situ_glu(gate.row(row), gate.row(row), up.row(row), width, betas);
    } else {
      pass.k().silu_glu(gate.row(row), gate.row(row), up.row(row), width);
    }
  });
}

void mlp(const Pass& pass, const Matrix& gate, const Matrix& up, const Matrix& down, ConstRows x,
         Rows out) {
  const Rows g = pass.workspace.tile(Scratch::kMlpGate, x.n);
  const Rows u = pass.workspace.tile(Scratch::kMlpUp, x.n);
  linear(pass.compute, g, gate, x);
  linear(pass.compute, u, up, x);
  glu(pass, g, u, gate.rows);
  linear(pass.compute, out, down, g);
}

}  // namespace sluice
