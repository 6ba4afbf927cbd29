// The options of sluice bench.
#include <limits>

#include "app/option_values.h"
#include "app/options_parser.h"
#include "base/size.h"

namespace sluice {

void add_bench(Parser& parser, BenchOptions& bench) {
  parser.text("BENCH", bench.kind, "decode, rows, io or cache");
  add_engine(parser, bench.engine);
  add_emulation(parser, bench.engine);
  parser.number<int64_t>("--pairs", bench.pairs, 1, kCountMax,
                         "Times that the arms are alternated (default: 30)");
  parser.number<int64_t>("--tokens", bench.tokens, 1, kCountMax,
                         "Tokens of one arm (decode; default: 1)");
  parser.number<int64_t>("--warmup", bench.warmup, 1, kCountMax,
                         "Tokens ahead of the first arm (decode, rows; default: 8)");
  parser.number<uint64_t>("--seed", bench.seed, 0, std::numeric_limits<uint64_t>::max(),
                          "Other tokens, other ranges (default: 1)");
  parser.size("--bytes", "Bytes that one arm reads (io; default: 1GiB)",
              [&bench](const std::string& text) -> Status {
                TRY(bench.bytes, parse_size(text));
                return Ok{};
              });
  parser.value("--rows", "Rows of a pass, several with commas between (rows; default: 1,2,4,8)",
               [&bench](const std::string& text) -> Status {
                 TRY(bench.rows, parse_counts("--rows", text));
                 return Ok{};
               });
  parser.text("--trace", bench.trace, "File of routes (cache)");
}

}  // namespace sluice
