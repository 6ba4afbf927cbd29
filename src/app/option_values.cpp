#include "app/option_values.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "app/numbers.h"
#include "base/size.h"

namespace sluice {
namespace {

constexpr double kLatencyMaxS = 10.0;
constexpr int32_t kEmulatedDrivesMax = 16;

}  // namespace

Error usage(std::string what) { return Error{Code::kInvalid, std::move(what)}; }

Status parse_spine(const std::string& text, SpineChoice& out) {
  const std::pair<const char*, SpineChoice> names[] = {
      {"auto", SpineChoice::kAuto}, {"bf16", SpineChoice::kBf16}, {"int8", SpineChoice::kInt8}};
  for (const auto& [name, choice] : names) {
    if (text != name) continue;
    out = choice;
    return Ok{};
  }
  return usage("--spine \"" + text + "\" is not one of auto, bf16, int8");
}

Status parse_isa(const std::string& text, std::string& out) {
  constexpr std::string_view kNames[] = {"auto", "scalar", "avx2", "avx512", "neon"};
  if (std::ranges::find(kNames, text) == std::end(kNames)) {
    return usage("--isa \"" + text + "\" is not one of auto, scalar, avx2, avx512, neon");
  }
  out = text;
  return Ok{};
}

Status parse_logit_bias(std::string_view text, std::vector<LogitBias>& out) {
  while (true) {
    const std::string_view entry = text.substr(0, text.find(','));
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      return usage("--logit-bias \"" + std::string(entry) + "\" is not of the form ID=BIAS");
    }
    LogitBias bias;
    TRY(bias.id, parse_number<TokenId>("--logit-bias id", entry.substr(0, equals), 0,
                                       std::numeric_limits<TokenId>::max()));
    TRY(bias.bias, parse_number<double>("--logit-bias value", entry.substr(equals + 1),
                                        -kSamplingMax, kSamplingMax));
    out.push_back(bias);
    if (entry.size() == text.size()) return Ok{};
    text.remove_prefix(entry.size() + 1);
  }
}

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::vector<TokenId> ids;
  while (true) {
    const size_t begin = text.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    TRY(const TokenId id,
        parse_number<TokenId>("token id", word, 0, std::numeric_limits<TokenId>::max()));
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

namespace {

// "80us", "1.5ms" or "0s".
Result<double> parse_latency(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number<double>(
        "latency", text.substr(0, text.size() - unit.size()), 0.0, kLatencyMaxS / seconds);
    if (number.ok()) return number.value() * seconds;
    break;
  }
  return usage("latency \"" + std::string(text) + "\" is not a time such as 80us or 1ms, at most " +
               "10 s");
}

}  // namespace

Result<EmulatedDrives> parse_emulated_drives(std::string_view text) {
  constexpr std::string_view kLatency = "latency=", kDrives = "drives=";
  EmulatedDrives drives;
  TRY(drives.traits.bytes_s, parse_rate(text.substr(0, text.find(','))));
  while (text.find(',') != std::string_view::npos) {
    text.remove_prefix(text.find(',') + 1);
    const std::string_view part = text.substr(0, text.find(','));
    if (part.starts_with(kLatency)) {
      TRY(drives.traits.latency_s, parse_latency(part.substr(kLatency.size())));
    } else if (part.starts_with(kDrives)) {
      TRY(drives.count, parse_number<int32_t>("--emulate-drive drives", part.substr(kDrives.size()),
                                              1, kEmulatedDrivesMax));
    } else {
      return usage("--emulate-drive \"" + std::string(part) +
                   "\" is neither latency=TIME nor drives=N");
    }
  }
  return drives;
}

Result<uint64_t> parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  const auto bytes_s = parse_size(size);
  if (!bytes_s.ok() || bytes_s.value() == 0) {
    return usage("rate \"" + std::string(text) + "\" is not a size per second such as 7.3GB/s");
  }
  return bytes_s.value();
}

Result<std::vector<int64_t>> parse_counts(std::string_view option, std::string_view text) {
  std::vector<int64_t> counts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    TRY(const int64_t count,
        parse_number<int64_t>(option, text.substr(begin, end - begin), 1, 4096));
    counts.push_back(count);
    begin = end + 1;
  }
  return counts;
}

}  // namespace sluice
