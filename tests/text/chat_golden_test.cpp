// The chat prompts of the bundled model's goldens: renderings, segments and ids.
#include <string>
#include <vector>

#include "text/chat.h"
#include "text/fixture.h"

namespace sluice {
namespace {

// goldens.json names the options as the reference renderer's arguments.
Json request_of(const Json& golden) {
  Json body = Json::object();
  body["messages"] = golden["messages"];
  for (const auto& [key, value] : golden["options"].items()) {
    if (key == "effort") {
      body["reasoning_effort"] = value;
    } else if (key == "response_format") {
      body["response_format"] = {{"type", value}};
      if (golden["options"].contains("schema")) {
        body["response_format"]["json_schema"] = {{"schema", golden["options"]["schema"]}};
      }
    } else if (key != "schema") {
      body[key] = value;
    }
  }
  return body;
}

TEST(ChatGoldens, EveryChatPromptRendersAndEncodesAsTheReferenceDid) {
  int seen = 0;
  for (const Json& golden : tiny_goldens()["prompts"]) {
    if (golden["kind"] != "chat") continue;
    const auto request = parse_chat(request_of(golden));
    ASSERT_TRUE(request.ok()) << request.error().what;
    const auto rendered = render_chat(request.value());
    ASSERT_TRUE(rendered.ok()) << rendered.error().what;
    const std::vector<Segment>& segments = rendered.value();
    EXPECT_EQ(rendered_text(segments), golden["rendered"].get<std::string>()) << golden["name"];
    Json listed = Json::array();
    for (const Segment& segment : segments) listed.push_back({segment.text, segment.markup});
    EXPECT_EQ(listed, golden["segments"]) << golden["name"];
    EXPECT_EQ(tiny_tokenizer().encode(segments), golden["ids"].get<std::vector<TokenId>>())
        << golden["name"];
    ++seen;
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace sluice
