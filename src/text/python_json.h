// JSON as Python's json module writes and reads it, because prompts were built with that module
// (spec 7.3, 7.4). Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

enum class JsonStyle {
  kSpaced,         // json.dumps(x, ensure_ascii=False): separators ", " and ": "
  kCompactSorted,  // separators "," and ":", keys of every object sorted by code point
};

// Numbers as Python prints them: integers in full, others by their shortest digits ("1.0",
// "1e-05"). `value` comes from parse_json or parse_python_json, so its depth is bounded.
std::string python_json(const Json& value, JsonStyle style);

// `text` as a JSON string literal without its quotes.
void append_json_escaped(std::string_view text, std::string& out);

// Parses as json.loads does: of a repeated key the last value counts, at the place of the first;
// integers of any size keep their digits (those beyond 64 bits are held as a Json binary of their
// text, which only python_json understands). Not taken over: NaN, Infinity, numbers beyond double
// and lone surrogates are refused. kInvalid for what is refused and beyond kJsonDepthMax.
Result<Json> parse_python_json(std::string_view text);

}  // namespace sluice
