#include "server/generation_fields.h"

#include <charconv>
#include <limits>
#include <random>

namespace sluice {
namespace {

constexpr size_t kStopsMax = 16;
constexpr double kBiasMax = 100.0;
// What top_p 0 stands for: the one most likely token.
constexpr double kTopPMin = 1e-9;

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Error wrong(const char* key, const std::string& problem) {
  return Error{Code::kInvalid, std::string(key) + " " + problem};
}

Result<std::vector<std::string>> parse_stop(const Json& stop) {
  std::vector<std::string> stops;
  if (stop.is_null()) return stops;
  if (!stop.is_string() && !stop.is_array()) {
    return wrong("stop", "must be a string or an array of strings");
  }
  for (const Json& each : stop.is_string() ? Json::array({stop}) : stop) {
    if (!each.is_string()) return wrong("stop", "must be a string or an array of strings");
    if (each.get_ref<const std::string&>().empty()) {
      return wrong("stop", "must not hold an empty string");
    }
    stops.push_back(each.get<std::string>());
  }
  if (stops.size() > kStopsMax) {
    return wrong("stop", "must hold at most " + std::to_string(kStopsMax) + " strings");
  }
  return stops;
}

Result<std::vector<LogitBias>> parse_logit_bias(const Json& bias) {
  std::vector<LogitBias> out;
  if (bias.is_null()) return out;
  if (!bias.is_object()) return wrong("logit_bias", "must be an object of token ids and numbers");
  for (const auto& [key, value] : bias.items()) {
    LogitBias entry;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), entry.id);
    if (error != std::errc() || end != key.data() + key.size()) {
      return wrong("logit_bias", "has the key \"" + key + "\", which is no token id");
    }
    if (!value.is_number() ||
        !(value.get<double>() >= -kBiasMax && value.get<double>() <= kBiasMax)) {
      return wrong("logit_bias", "must hold numbers between -100 and 100");
    }
    entry.bias = value.get<double>();
    out.push_back(entry);
  }
  return out;
}

Status parse_sampling(const Fields& fields, SamplingParams& out) {
  constexpr double kAny = 1e6;  // the sampler's own bound
  TRY(const auto temperature, fields.number("temperature", 0.0, 2.0));
  TRY(const auto top_p, fields.number("top_p", 0.0, 1.0));
  TRY(const auto top_k, fields.integer("top_k", -1, std::numeric_limits<int32_t>::max()));
  TRY(const auto min_p, fields.number("min_p", 0.0, 1.0));
  TRY(const auto repetition, fields.number("repetition_penalty", 1e-6, kAny));
  TRY(const auto presence, fields.number("presence_penalty", -2.0, 2.0));
  TRY(const auto frequency, fields.number("frequency_penalty", -2.0, 2.0));
  TRY(const auto seed, fields.integer("seed", std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max()));
  TRY(out.logit_bias, parse_logit_bias(fields.get("logit_bias")));
  out.temperature = temperature.value_or(1.0);
  out.top_p = std::max(top_p.value_or(1.0), kTopPMin);
  out.top_k = std::max<int64_t>(top_k.value_or(0), 0);  // -1, as some have it, is all too
  out.min_p = min_p.value_or(0.0);
  out.repetition_penalty = repetition.value_or(1.0);
  out.presence_penalty = presence.value_or(0.0);
  out.frequency_penalty = frequency.value_or(0.0);
  out.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  return Ok{};
}

Status parse_streaming(const Fields& fields, GenerationFields& out) {
  TRY(const auto stream, fields.boolean("stream"));
  out.stream = stream.value_or(false);
  const Json& options = fields.get("stream_options");
  if (options.is_null()) return Ok{};
  if (!options.is_object()) return wrong("stream_options", "must be an object");
  if (!out.stream) return wrong("stream_options", "is only for requests with stream: true");
  const Fields inner(options);
  const auto usage = inner.boolean("include_usage");
  const auto progress = inner.boolean("include_progress");
  if (!usage.ok()) return wrong("stream_options.include_usage", "must be true or false");
  if (!progress.ok()) return wrong("stream_options.include_progress", "must be true or false");
  out.include_usage = usage.value().value_or(false);
  out.include_progress = progress.value().value_or(false);
  return Ok{};
}

}  // namespace

Result<GenerationFields> parse_generation(const Fields& fields) {
  GenerationFields out;
  TRY(const auto model, fields.text("model"));
  out.model = model.value_or("");
  TRY_OK(parse_streaming(fields, out));
  TRY(const auto n, fields.integer("n", 1, kChoicesMax));
  out.n = n.value_or(1);
  TRY(out.max_tokens, fields.integer("max_tokens", 0, std::numeric_limits<int64_t>::max()));
  TRY(out.stop, parse_stop(fields.get("stop")));
  TRY_OK(parse_sampling(fields, out.sampling));
  return out;
}

Status refuse_field(const Fields& fields, const char* key, const char* reason) {
  if (!fields.has(key)) return Ok{};
  return Error{Code::kUnsupported, std::string(key) + " is not supported: " + reason};
}

}  // namespace sluice
