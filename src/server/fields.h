// Typed fields of a JSON request: absent and null are the same, another type is an error that names
// the field. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

class Fields {
 public:
  // `object` is an object and outlives this.
  explicit Fields(const Json& object) : object_(object) {}

  const Json& json() const { return object_; }
  // The value, or null.
  const Json& get(const char* key) const;
  bool has(const char* key) const { return !get(key).is_null(); }

  Result<std::optional<bool>> boolean(const char* key) const;
  Result<std::optional<int64_t>> integer(const char* key, int64_t least, int64_t most) const;
  Result<std::optional<double>> number(const char* key, double least, double most) const;
  Result<std::optional<std::string>> text(const char* key) const;

 private:
  const Json& object_;
};

// The body of a request as an object. kInvalid for anything else.
Result<Json> parse_body(const std::string& body);

}  // namespace sluice
