// What the scheduler has done, counted: for /metrics and for people. Plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine/request_stream.h"

namespace sluice {

// Counts of observations in buckets, as Prometheus has them.
struct Histogram {
  std::vector<double> bounds;     // upper bounds, rising; above the last there is one bucket more
  std::vector<uint64_t> buckets;  // [bounds + 1], each by itself
  double sum = 0.0;
  uint64_t count = 0;

  explicit Histogram(std::vector<double> upper_bounds)
      : bounds(std::move(upper_bounds)), buckets(bounds.size() + 1) {}
  void observe(double value) {
    size_t bucket = 0;
    while (bucket < bounds.size() && value > bounds[bucket]) ++bucket;
    ++buckets[bucket];
    sum += value;
    ++count;
  }
};

struct ServingStats {
  std::map<FinishReason, uint64_t> finished;  // requests by how they ended
  uint64_t refused = 0;                       // because the queue was full
  uint64_t preempted = 0;                     // put back because the pool of positions was full
  int64_t queued = 0, running = 0;            // at the moment
  uint64_t prompt_tokens = 0, new_tokens = 0;
  uint64_t passes = 0, pass_rows = 0;
  uint64_t bytes_read = 0;         // aligned bytes asked of the drive since open
  uint64_t expert_bytes_read = 0;  // of them for routed experts
  uint64_t expert_hits = 0, expert_misses = 0;
  double request_s = 0.0;  // what a request takes once it runs: the mean of late
  // From a megabyte of tiny-k3 in memory to hours of K3 behind a slow drive.
  Histogram ttft_s{{0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10800}};
  Histogram token_s{{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120}};
  Histogram pass_s{{0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 60, 120, 300, 600}};
};

// One request in lists.
struct RequestStatus {
  std::string id;
  size_t index = 0;  // among those of the id
  RequestProgress progress;
  int64_t max_new = 0;
  double age_s = 0.0;  // since the submission
  // Until the first token, or until the end if every token that may come does; below 0: not known.
  double first_token_eta_s = -1.0;
  double end_eta_s = -1.0;
};

}  // namespace sluice
