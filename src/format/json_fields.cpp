#include "format/json_fields.h"

#include <cmath>
#include <utility>

namespace sluice {
namespace {

// A value as an error text shows it.
std::string shown(const Json& value) {
  constexpr size_t kShownBytesMax = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = dump_json(value);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

}  // namespace

void FieldProblem::report(const std::string& key, const std::string& text, Code code) {
  if (!error_) error_ = Error{code, document_ + ": " + key + " " + text};
}

Status FieldProblem::status() const {
  if (error_) return *error_;
  return Ok{};
}

JsonFields::JsonFields(const Json& object, std::string prefix, FieldProblem& problem)
    : object_(object), prefix_(std::move(prefix)), problem_(problem) {
  CHECK(object.is_object());
}

const Json* JsonFields::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::report(std::string_view key, const std::string& text, Code code) const {
  problem_.report(name(key), text, code);
}

int64_t JsonFields::integer(std::string_view key, const Json& value, int64_t min, int64_t max,
                            const char* kind) const {
  // A non-negative literal is stored unsigned and may pass int64; any other is refused by its type.
  const bool small = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  const int64_t number = small ? value.get<int64_t>() : 0;
  if (!value.is_number_integer() || (small && number < min)) {
    report(key, std::string("must be ") + kind + ", not " + shown(value));
    return min;
  }
  if (!small || number > max) {
    report(key,
           "is " + shown(value) + ", above the largest supported value " + std::to_string(max));
    return min;
  }
  return number;
}

int64_t JsonFields::count(std::string_view key, int64_t max) const {
  if (find(key)) return count_or(key, max, 0);
  report(key, "is missing");
  return 1;
}

int64_t JsonFields::count_or(std::string_view key, int64_t max, int64_t absent) const {
  const Json* value = find(key);
  return value ? integer(key, *value, 1, max, "a positive integer") : absent;
}

int64_t JsonFields::index_or(std::string_view key, int64_t max, int64_t absent) const {
  const Json* value = find(key);
  return value ? integer(key, *value, 0, max, "an integer of at least 0") : absent;
}

std::optional<float> JsonFields::number(std::string_view key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number() || !std::isfinite(static_cast<float>(value->get<double>()))) {
    report(key, "must be a number, not " + shown(*value));
    return std::nullopt;
  }
  return static_cast<float>(value->get<double>());
}

float JsonFields::positive_or(std::string_view key, float absent) const {
  const float value = number(key).value_or(absent);
  if (value > 0) return value;
  report(key, "must be a positive number, not " + shown(*find(key)));
  return absent;
}

bool JsonFields::flag_or(std::string_view key, bool absent) const {
  const Json* value = find(key);
  if (!value) return absent;
  if (value->is_boolean()) return value->get<bool>();
  report(key, "must be true or false, not " + shown(*value));
  return absent;
}

std::string JsonFields::text_or(std::string_view key, std::string_view absent) const {
  const Json* value = find(key);
  if (!value) return std::string(absent);
  if (value->is_string()) return value->get<std::string>();
  report(key, "must be a string, not " + shown(*value));
  return std::string(absent);
}

std::vector<int64_t> JsonFields::integers(std::string_view key, int64_t min, int64_t max) const {
  std::vector<int64_t> out;
  const Json* value = find(key);
  if (!value) {
    report(key, "is missing");
  } else if (!value->is_array()) {
    report(key, "must be an array of integers, not " + shown(*value));
  } else {
    for (const Json& item : *value) {
      const std::string kind = "an array of integers of at least " + std::to_string(min);
      out.push_back(integer(key, item, min, max, kind.c_str()));
    }
  }
  return out;
}

std::vector<int64_t> JsonFields::integer_or_list(std::string_view key, int64_t max) const {
  const Json* value = find(key);
  if (!value) return {};
  if (value->is_array()) return integers(key, 0, max);
  return {integer(key, *value, 0, max, "a token id or an array of token ids")};
}

const Json& JsonFields::object(std::string_view key) const {
  static const Json kEmpty = Json::object();
  const Json* value = find(key);
  if (value && value->is_object()) return *value;
  report(key, value ? "must be an object, not " + shown(*value) : "is missing");
  return kEmpty;
}

}  // namespace sluice
