// sluice bench cache: hit rates of policies and sizes on a file of routes.
#include <cmath>
#include <string>

#include "app/bench.h"
#include "app/commands.h"
#include "app/interrupt.h"
#include "engine/cache_simulation.h"
#include "io/file.h"

namespace sluice {
namespace {

constexpr uint64_t kTraceBytesMax = uint64_t{1} << 30;
constexpr double kShares[] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0};

}  // namespace

Result<int> bench_cache(const BenchOptions& options) {
  TRY(const std::string text, read_text_file(options.trace, kTraceBytesMax));
  TRY(const Routes routes, parse_routes(text, options.trace));
  const auto all = static_cast<double>(routes.n_layers * routes.n_experts);
  for (const double share : kShares) {
    const auto slots = static_cast<int64_t>(std::ceil(share * all));
    for (const CachePolicy policy : kCachePolicies) {
      if (interrupt_flag()) return kExitInterrupted;
      Json row = bench_row(options, cache_policy_name(policy));
      row["evidence"] = "simulated";
      row["trace"] = options.trace;
      row["tokens"] = routes.experts.size();
      row["layers"] = routes.n_layers;
      row["experts"] = routes.n_experts;
      row["slots"] = slots;
      row["share"] = share;
      row["hit_rate"] = static_cast<double>(simulate_cache(routes, policy, slots)) /
                        static_cast<double>(routes.n_choices());
      TRY_OK(print_row(row));
    }
  }
  return kExitDone;
}

}  // namespace sluice
