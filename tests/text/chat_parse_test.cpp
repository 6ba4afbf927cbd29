// What parse_chat refuses, and how it says so.
#include <string>

#include "text/chat.h"
#include "text/fixture.h"

namespace sluice {
namespace {

void expect_refused(Code code, const std::string& part, std::string_view body) {
  const auto request = parse_chat(json_of(body));
  ASSERT_FALSE(request.ok()) << body;
  EXPECT_EQ(request.error().code, code) << body;
  EXPECT_NE(request.error().what.find(part), std::string::npos) << request.error().what;
}

std::string with_user(const std::string& more) {
  return R"({"messages": [{"role": "user", "content": "x"}], )" + more + "}";
}

TEST(ChatParse, ForcingOneFunctionIsUnsupportedByName) {
  expect_refused(
      Code::kUnsupported, "\"get_weather\"",
      with_user(R"("tool_choice": {"type": "function", "function": {"name": "get_weather"}})"));
  expect_refused(Code::kInvalid, "tool_choice", with_user(R"("tool_choice": "always")"));
  expect_refused(Code::kInvalid, "tool_choice", with_user(R"("tool_choice": 1)"));
}

TEST(ChatParse, MediumAndNoneAreRefusedAsEffortsWithTheReason) {
  expect_refused(Code::kInvalid, "K3's own encoder rejects it",
                 with_user(R"("reasoning_effort": "medium")"));
  expect_refused(Code::kInvalid, "\"thinking\": false", with_user(R"("reasoning_effort": "none")"));
  expect_refused(Code::kInvalid, "reasoning_effort", with_user(R"("reasoning_effort": "turbo")"));
  expect_refused(Code::kInvalid, "reasoning_effort", with_user(R"("reasoning_effort": 3)"));
  expect_refused(Code::kInvalid, "thinking must be", with_user(R"("thinking": "yes")"));
}

TEST(ChatParse, ImagesAreNotSupportedYet) {
  expect_refused(Code::kUnsupported, "messages[0].content[1] is an image",
                 R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                     {"type": "image_url", "image_url": {"url": "data:"}}]}]})");
  expect_refused(Code::kUnsupported, "not supported yet",
                 R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})");
  expect_refused(Code::kUnsupported, "\"audio\"",
                 R"({"messages": [{"role": "user", "content": [{"type": "audio"}]}]})");
}

TEST(ChatParse, WrongShapesNameTheField) {
  expect_refused(Code::kInvalid, "JSON object", "[]");
  expect_refused(Code::kInvalid, "messages", "{}");
  expect_refused(Code::kInvalid, "messages", R"({"messages": []})");
  expect_refused(Code::kInvalid, "messages[0] must", R"({"messages": [7]})");
  expect_refused(Code::kInvalid, "messages[0].role", R"({"messages": [{"content": "x"}]})");
  expect_refused(Code::kInvalid, "messages[0].content",
                 R"({"messages": [{"role": "user", "content": 7}]})");
  expect_refused(Code::kInvalid, "messages[0].content[0]",
                 R"({"messages": [{"role": "user", "content": ["x"]}]})");
  expect_refused(Code::kInvalid, "messages[0].name",
                 R"({"messages": [{"role": "user", "name": 1, "content": "x"}]})");
  expect_refused(Code::kInvalid, "messages[0].tool_calls must",
                 R"({"messages": [{"role": "assistant", "tool_calls": {}}]})");
  expect_refused(Code::kInvalid, "messages[0].tool_calls[0] has no function name",
                 R"({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]})");
  expect_refused(Code::kInvalid, "tools must be an array", with_user(R"("tools": {})"));
  expect_refused(Code::kInvalid, "response_format must", with_user(R"("response_format": "x")"));
  expect_refused(Code::kInvalid, "response_format.type", with_user(R"("response_format": {})"));
  expect_refused(Code::kInvalid, "response_format.json_schema",
                 with_user(R"("response_format": {"type": "json_schema"})"));
}

TEST(ChatParse, ArgumentsThatAreJsonButNoObjectAreRefused) {
  for (const char* arguments : {"[1]", "7", "null", "true", R"(\"x\")"}) {
    expect_refused(Code::kInvalid, "messages[0].tool_calls[0].arguments",
                   std::string(R"({"messages": [{"role": "assistant", "tool_calls":
                       [{"function": {"name": "f", "arguments": ")") +
                       arguments + R"("}}]}]})");
  }
  expect_refused(Code::kInvalid, "messages[0].tool_calls[0].arguments",
                 R"({"messages": [{"role": "assistant", "tool_calls":
                     [{"name": "f", "arguments": [1]}]}]})");
}

TEST(ChatParse, NullStandsForAnAbsentField) {
  const auto request = parse_chat(json_of(with_user(
      R"("tools": null, "tool_choice": null, "response_format": null, "reasoning_effort": null,
         "thinking": null)")));
  ASSERT_TRUE(request.ok()) << request.error().what;
  EXPECT_TRUE(request.value().thinking);
  EXPECT_FALSE(request.value().effort);
  EXPECT_EQ(request.value().response_format, ResponseFormat::kText);
}

}  // namespace
}  // namespace sluice
