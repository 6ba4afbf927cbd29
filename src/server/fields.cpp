#include "server/fields.h"

#include <array>
#include <charconv>

namespace sluice {
namespace {

Error wrong(const char* key, const std::string& problem) {
  return Error{Code::kInvalid, std::string(key) + " must be " + problem};
}

std::string spell(double value) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  static_cast<void>(error);  // any double fits
  return std::string(buffer.data(), end);
}

}  // namespace

const Json& Fields::get(const char* key) const {
  static const Json kNull;
  const auto found = object_.find(key);
  return found == object_.end() ? kNull : *found;
}

Result<std::optional<bool>> Fields::boolean(const char* key) const {
  const Json& value = get(key);
  if (value.is_null()) return std::optional<bool>();
  if (!value.is_boolean()) return wrong(key, "true or false");
  return std::optional(value.get<bool>());
}

Result<std::optional<int64_t>> Fields::integer(const char* key, int64_t least, int64_t most) const {
  const Json& value = get(key);
  if (value.is_null()) return std::optional<int64_t>();
  if (!value.is_number_integer()) return wrong(key, "an integer");
  const bool huge =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = huge ? INT64_MAX : value.get<int64_t>();
  if (huge || number < least || number > most) {
    return wrong(key,
                 "an integer between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return std::optional(number);
}

Result<std::optional<double>> Fields::number(const char* key, double least, double most) const {
  const Json& value = get(key);
  if (value.is_null()) return std::optional<double>();
  if (!value.is_number()) return wrong(key, "a number");
  const auto number = value.get<double>();
  if (!(number >= least && number <= most)) {
    return wrong(key, "a number between " + spell(least) + " and " + spell(most));
  }
  return std::optional(number);
}

Result<std::optional<std::string>> Fields::text(const char* key) const {
  const Json& value = get(key);
  if (value.is_null()) return std::optional<std::string>();
  if (!value.is_string()) return wrong(key, "a string");
  return std::optional(value.get<std::string>());
}

Result<Json> parse_body(const std::string& body) {
  TRY(Json json, parse_json(body, "the request's body"));
  if (!json.is_object()) {
    return Error{Code::kInvalid, "the request's body must be a JSON object"};
  }
  return json;
}

}  // namespace sluice
