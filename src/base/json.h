// The one wrapper of nlohmann-json. Input from outside is parsed here and only here: depth-bounded,
// duplicate keys refused, errors as values.
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// Keeps object keys in the order of the text: tool arguments are rendered in insertion order.
using Json = nlohmann::ordered_json;

constexpr int kJsonDepthMax = 128;

// Parses one JSON value. `name` (a file, "request body") begins the error's text.
// kInvalid for text that is not JSON, nests deeper than kJsonDepthMax or repeats a key.
Result<Json> parse_json(std::string_view text, std::string_view name);

// Compact JSON (`,` and `:`), non-ASCII kept; broken UTF-8 becomes U+FFFD.
std::string dump_json(const Json& value);

// Receives a flat stream of events from parse_json_events; return false to stop with an error.
using JsonSax = nlohmann::json_sax<Json>;

// Streams one JSON value through `sax` without building a tree: for indexes of 500,000 tensors.
// kInvalid for text that is not JSON or when the handler stopped.
Status parse_json_events(std::string_view text, std::string_view name, JsonSax& sax);

}  // namespace sluice
