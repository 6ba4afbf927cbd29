// make_slice: writes a snapshot of Kimi K3's form with generated weights (slice.h), for tests and
// measurements without the release.
#include "make_slice/slice.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

namespace {

constexpr const char* kUsage =
    "usage: make_slice --out DIR [--layers N] [--experts N] [--reduce N] [--seed S]\n"
    "                  [--headers-only] [--pack] [--full]\n"
    "Writes a snapshot of Kimi K3's form with generated weights into DIR.\n"
    "  --layers N      the first a dense KDA layer, every fourth and the last MLA (default 3)\n"
    "  --experts N     of each MoE layer (default 896)\n"
    "  --reduce N      divide all widths by N, rounded up to whole 128s (default 1)\n"
    "  --seed S        other weights (default 1)\n"
    "  --headers-only  payloads are holes: for sluice --emulate-drive and sluice plan\n"
    "  --pack          the int8 spine too\n"
    "  --full          all of Kimi K3, vision included; needs --headers-only\n";

// One slice is never larger.
constexpr uint64_t kBytesMax = 45'000'000'000;

std::optional<uint64_t> parse(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Arguments {
  sluice::slice::SliceOptions options;
  uint64_t layers = 3, experts = 896, reduce = 1;
  bool full = false;

  // Takes what begins at `words`; how many it were, 0 when they make no sense.
  int take(char** words, int n) {
    const std::string_view word = words[0];
    bool* const flag = word == "--headers-only" ? &options.headers_only
                       : word == "--pack"       ? &options.pack
                       : word == "--full"       ? &full
                                                : nullptr;
    if (flag) return *flag = true, 1;
    if (n < 2) return 0;
    if (word == "--out") return options.directory = words[1], 2;
    uint64_t* const number = word == "--layers"    ? &layers
                             : word == "--experts" ? &experts
                             : word == "--reduce"  ? &reduce
                             : word == "--seed"    ? &options.seed
                                                   : nullptr;
    const std::optional<uint64_t> value = parse(words[1]);
    if (!number || !value) return 0;
    *number = *value;
    return 2;
  }

  bool sane() const {
    return !options.directory.empty() && layers >= 1 && layers <= 1024 && experts >= 1 &&
           experts <= 4096 && reduce >= 1 && reduce <= 4096 && (!full || options.headers_only);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc;) {
    const int taken = arguments.take(argv + i, argc - i);
    if (taken == 0) return std::fputs(kUsage, stderr), 2;
    i += taken;
  }
  if (!arguments.sane()) return std::fputs(kUsage, stderr), 2;
  sluice::slice::SliceOptions& options = arguments.options;
  if (!arguments.full) {
    options.shape = sluice::slice::slice_shape(static_cast<int64_t>(arguments.layers),
                                               static_cast<int64_t>(arguments.experts),
                                               static_cast<int64_t>(arguments.reduce));
  }
  const uint64_t bytes = sluice::slice::payload_bytes(options.shape);
  if (bytes > kBytesMax && !options.headers_only) {
    std::fprintf(stderr,
                 "make_slice: that would be %.1f GB, more than %.0f GB: lower --layers or "
                 "--experts, or give --headers-only\n",
                 static_cast<double>(bytes) / 1e9, static_cast<double>(kBytesMax) / 1e9);
    return 1;
  }
  const sluice::Status written = sluice::slice::write_slice(options);
  if (!written.ok()) {
    std::fprintf(stderr, "make_slice: %s\n", written.error().what.c_str());
    return 1;
  }
  std::printf("%s: %lld shards, %.2f GB of payload%s\n", options.directory.c_str(),
              static_cast<long long>(options.shape.shards()), static_cast<double>(bytes) / 1e9,
              options.headers_only ? ", as holes" : "");
  return 0;
}
