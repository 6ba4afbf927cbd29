// JSON from outside: what parses is written and parsed again unchanged, in both dialects.
#include <string>

#include "base/json.h"
#include "fuzz/fuzz_targets.h"
#include "text/python_json.h"

namespace sluice {

void fuzz_json(std::string_view input) {
  const Result<Json> json = parse_json(input, "input");
  if (json.ok()) {
    const std::string written = dump_json(json.value());
    const Result<Json> again = parse_json(written, "written");
    CHECK(again.ok());
    CHECK(dump_json(again.value()) == written);
    CHECK(parse_python_json(input).ok());
  } else {
    CHECK(json.error().what.starts_with("input: "));
  }
  const Result<Json> python = parse_python_json(input);
  if (!python.ok()) return;
  for (const JsonStyle style : {JsonStyle::kSpaced, JsonStyle::kCompactSorted}) {
    const std::string written = python_json(python.value(), style);
    const Result<Json> again = parse_python_json(written);
    CHECK(again.ok());
    CHECK(python_json(again.value(), style) == written);
  }
}

}  // namespace sluice
