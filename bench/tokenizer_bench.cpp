// tokenizer_bench [MODEL_DIR [MEGABYTES]]: MB/s of Tokenizer::encode on one core, by the CPU time
// of the process, so that a busy machine disturbs it less. One JSON line per text: prose of
// MEGABYTES (default 10) made of README.md's words in random sentences, code, and long runs of one
// character at 0.5 and 1 MB, whose time ratio shows whether it is linear.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/measure.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kMegabyte = 1'000'000;
constexpr int kRounds = 7;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Sentences and paragraphs of words drawn from `source`, always the same for one source.
std::string prose_like(const std::string& source, size_t bytes) {
  std::istringstream in(source);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  CHECK(!words.empty());
  std::string text;
  uint32_t state = 1;
  for (size_t n = 0; text.size() < bytes; ++n) {
    state = state * 1664525 + 1013904223;
    text += words[(state >> 8) % words.size()];
    text += n % 180 == 179 ? ".\n\n" : n % 13 == 12 ? ". " : " ";
  }
  text.resize(bytes);
  return text;
}

std::string repeated(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

// CPU seconds that `work` takes.
template <class Work>
double cpu_seconds(Work work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Median seconds.
double measure(const Tokenizer& tokenizer, const char* name, const std::string& text) {
  size_t ids = 0;
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    times.push_back(cpu_seconds([&] { ids = tokenizer.encode(text).size(); }));
  }
  const double median = percentile(times, 0.5);
  const double megabytes = static_cast<double>(text.size()) / kMegabyte;
  std::printf(
      "{\"bench\":\"tokenizer\",\"vocabulary\":%lld,\"text\":\"%s\",\"bytes\":%zu,\"ids\":%zu,"
      "\"rounds\":%d,\"mb_s\":%.2f,\"mb_s_best\":%.2f}\n",
      static_cast<long long>(tokenizer.vocab_size()), name, text.size(), ids, kRounds,
      megabytes / median, megabytes / percentile(times, 0.0));
  return median;
}

void measure_linearity(const Tokenizer& tokenizer, const char* name, const std::string& unit) {
  const double half = measure(tokenizer, name, repeated(unit, kMegabyte / 2));
  const double whole = measure(tokenizer, name, repeated(unit, kMegabyte));
  std::printf("{\"bench\":\"tokenizer\",\"text\":\"%s\",\"time_ratio_1_to_half_mb\":%.2f}\n", name,
              whole / half);
}

Status run(const std::string& model, size_t megabytes) {
  TRY(const Tokenizer tokenizer, Tokenizer::parse(read_file(model + "/tiktoken.model"),
                                                  read_file(model + "/tokenizer_config.json")));
  const std::string root = SLUICE_SOURCE_DIR;
  measure(tokenizer, "prose", prose_like(read_file(root + "/README.md"), megabytes * kMegabyte));
  measure(tokenizer, "code", repeated(read_file(root + "/src/text/splitter.cpp"), 2 * kMegabyte));
  measure_linearity(tokenizer, "letters", "a");
  measure_linearity(tokenizer, "spaces", " ");
  measure_linearity(tokenizer, "newlines", "\n");
  measure_linearity(tokenizer, "han", "\u6F22");
  return Ok{};
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const char* model = argc > 1 ? argv[1] : SLUICE_SOURCE_DIR "/models/tiny-k3";
  const int megabytes = argc > 2 ? std::atoi(argv[2]) : 10;
  const sluice::Status done = sluice::run(model, static_cast<size_t>(megabytes));
  if (!done.ok()) std::fprintf(stderr, "tokenizer_bench: %s\n", done.error().what.c_str());
  return done.ok() ? 0 : 1;
}
