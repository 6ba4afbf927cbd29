// Typed reading of one JSON object's keys. The first problem is kept and names the key; later reads
// then return harmless values, so that a parser stays a straight list of fields.
// One owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

// The first problem met by any reader of one document.
class FieldProblem {
 public:
  explicit FieldProblem(std::string_view document) : document_(document) {}
  // Keeps "<document>: <key> <text>" unless an earlier problem is kept.
  void report(const std::string& key, const std::string& text, Code code = Code::kInvalid);
  Status status() const;

 private:
  std::string document_;
  std::optional<Error> error_;
};

class JsonFields {
 public:
  // `prefix` ("text_config.") stands before every key in error texts. `object` and `problem`
  // outlive the reader; `object` must be a JSON object.
  JsonFields(const Json& object, std::string prefix, FieldProblem& problem);

  // An absent key and null are the same: nothing.
  const Json* find(std::string_view key) const;
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  void report(std::string_view key, const std::string& text, Code code = Code::kInvalid) const;

  // A positive integer up to `max`. Required, with a default, or optional.
  int64_t count(std::string_view key, int64_t max) const;
  int64_t count_or(std::string_view key, int64_t max, int64_t absent) const;
  // An integer of 0..max.
  int64_t index_or(std::string_view key, int64_t max, int64_t absent) const;
  // A finite number that fp32 holds.
  std::optional<float> number(std::string_view key) const;
  float positive_or(std::string_view key, float absent) const;
  bool flag_or(std::string_view key, bool absent) const;
  std::string text_or(std::string_view key, std::string_view absent) const;
  // An array of integers min..max; required.
  std::vector<int64_t> integers(std::string_view key, int64_t min, int64_t max) const;
  // An array of integers 0..max or one such integer; empty when absent.
  std::vector<int64_t> integer_or_list(std::string_view key, int64_t max) const;
  // The object under `key`, or an empty one after reporting it.
  const Json& object(std::string_view key) const;

 private:
  int64_t integer(std::string_view key, const Json& value, int64_t min, int64_t max,
                  const char* kind) const;

  const Json& object_;
  std::string prefix_;
  FieldProblem& problem_;
};

}  // namespace sluice
