#include "text/python_json.h"

#include "text/fixture.h"

namespace sluice {
namespace {

std::string spaced(std::string_view text) {
  const auto parsed = parse_python_json(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? python_json(parsed.value(), JsonStyle::kSpaced) : "";
}

// Expected values: json.dumps(json.loads(x), ensure_ascii=False) of Python 3.11.
TEST(PythonJson, NumbersArePrintedAsPythonPrintsThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "-0.0"},
      {"42", "42"},
      {"-17", "-17"},
      {"1.0", "1.0"},
      {"1.50", "1.5"},
      {"100.0", "100.0"},
      {"0.1", "0.1"},
      {"123.456", "123.456"},
      {"1e3", "1000.0"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"1.5e16", "1.5e+16"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"9999999999999998.0", "9999999999999998.0"},
      {"0.0001", "0.0001"},
      {"0.00012", "0.00012"},
      {"0.00001", "1e-05"},
      {"-0.000015", "-1.5e-05"},
      {"1e100", "1e+100"},
      {"5e-324", "5e-324"},
      {"2.2250738585072014e-308", "2.2250738585072014e-308"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551616", "18446744073709551616"},
      {"-123456789012345678901234567890", "-123456789012345678901234567890"},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(spaced(text), want);
}

TEST(PythonJson, StringsKeepNonAsciiAndEscapeControls) {
  EXPECT_EQ(spaced(R"("\u00e9\ud83d\ude42 \u007f / \" \\ \b\f\n\r\t \u0001\u001f")"),
            "\"\u00e9\U0001F642 \x7F / \\\" \\\\ \\b\\f\\n\\r\\t \\u0001\\u001f\"");
}

TEST(PythonJson, TheTwoStylesDifferInSeparatorsAndOrder) {
  const Json value = json_of(R"({"b":[1,{"z":null,"a":true}],"a":{},"é":[],"B":"x"})");
  EXPECT_EQ(python_json(value, JsonStyle::kSpaced),
            R"({"b": [1, {"z": null, "a": true}], "a": {}, "é": [], "B": "x"})");
  EXPECT_EQ(python_json(value, JsonStyle::kCompactSorted),
            R"({"B":"x","a":{},"b":[1,{"a":true,"z":null}],"é":[]})");
}

TEST(PythonJson, OfARepeatedKeyTheLastValueCounts) {
  EXPECT_EQ(spaced(R"({"a":1,"b":[2],"a":{"c":3},"b":4})"), R"({"a": {"c": 3}, "b": 4})");
}

TEST(PythonJson, WhatIsNotJsonIsRefused) {
  for (const char* text :
       {"", "{", "{\"a\": Paris", "[1,]", "NaN", "1e999", "\"\\ud800\"", "{} x"}) {
    EXPECT_FALSE(parse_python_json(text).ok()) << text;
  }
  EXPECT_FALSE(parse_python_json(std::string(1000, '[') + std::string(1000, ']')).ok());
}

}  // namespace
}  // namespace sluice
