// JSON from outside: bounded, without repeated keys, in the order of the text.
#include "base/json.h"

#include <string>

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(Json, KeepsKeysInTheOrderOfTheText) {
  const Result<Json> json =
      parse_json(R"({"z": 1, "a": [true, null, -2.5], "m": {"y": "x"}})", "t");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(dump_json(json.value()), R"({"z":1,"a":[true,null,-2.5],"m":{"y":"x"}})");
}

TEST(Json, RefusesARepeatedKeyAndNamesIt) {
  const Result<Json> json = parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", "request body");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().code, Code::kInvalid);
  EXPECT_NE(json.error().what.find("request body"), std::string::npos);
  EXPECT_NE(json.error().what.find("\"b\""), std::string::npos);
  EXPECT_TRUE(parse_json(R"([{"b": 1}, {"b": 2}])", "t").ok());
}

TEST(Json, RefusesDeepNestingWithoutRecursion) {
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax), "t").ok());
  EXPECT_FALSE(parse_json(nested(kJsonDepthMax + 1), "t").ok());
  EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "t").ok());
}

TEST(Json, RefusesBrokenTextAndNamesTheSource) {
  for (const char* text : {"", " ", "{", "}", "[1,]", "{\"a\":}", "{\"a\" 1}", "nul", "1 2",
                           "\"\x80\"", "'a'", "[1e999]", "\"\\ud800\""}) {
    const Result<Json> json = parse_json(text, "config.json");
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_TRUE(json.error().what.starts_with("config.json: ")) << json.error().what;
  }
}

TEST(Json, BrokenUtf8IsWrittenAsReplacementCharacters) {
  EXPECT_EQ(dump_json(Json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(dump_json(Json("\xc3\xa9")), "\"\xc3\xa9\"");
}

// Counts keys; stops at "stop".
class KeyCounter final : public JsonSax {
 public:
  int keys = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t& key) override { return ++keys, key != "stop"; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

TEST(Json, EventsReachTheHandlerUntilItStops) {
  KeyCounter all;
  EXPECT_TRUE(parse_json_events(R"({"a": [{"b": 1}], "c": 2})", "t", all).ok());
  EXPECT_EQ(all.keys, 3);
  KeyCounter stopped;
  const Status status = parse_json_events(R"({"a": 1, "stop": 2, "c": 3})", "index", stopped);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kInvalid);
  EXPECT_TRUE(status.error().what.starts_with("index: "));
  EXPECT_EQ(stopped.keys, 2);
  KeyCounter broken;
  EXPECT_FALSE(parse_json_events("{\"a\": ", "t", broken).ok());
}

}  // namespace
}  // namespace sluice
