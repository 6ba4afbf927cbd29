#include "text/stream_decoder.h"

#include "text/fixture.h"
#include "text/utf8.h"

namespace sluice {
namespace {

// Ids of the bytes one by one, so that every cut through every character is met.
std::vector<TokenId> byte_ids(std::string_view bytes) {
  std::vector<TokenId> ids;
  for (const char c : bytes) ids.push_back(tiny_tokenizer().encode(std::string(1, c))[0]);
  return ids;
}

bool is_complete(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.bytes == 1 && static_cast<uint8_t>(text[at]) >= 0x80) return false;
    at += c.bytes;
  }
  return true;
}

// Expected texts are those of Python's bytes.decode("utf-8", "replace").
const std::pair<const char*, const char*> kTexts[] = {
    {"plain", "plain"},
    {"caf\u00e9 \u4f60\u597d \U0001F642!", "caf\u00e9 \u4f60\u597d \U0001F642!"},
    {"a\xFFz", "a\uFFFDz"},
    {"\xF0\x9F\x99", "\uFFFD"},
    {"\xF0\x9F\x99z", "\uFFFDz"},
    {"\xE4\xBD", "\uFFFD"},
    {"\xE4\xE4\xBD\xA0", "\uFFFD\u4f60"},
    {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
    {"\xC0\xAF", "\uFFFD\uFFFD"},
    {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
    {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
    {"\x80\x80", "\uFFFD\uFFFD"},
    {"\xF0\x9F\x99\x82\xF0", "\U0001F642\uFFFD"},
};

TEST(Decode, ReplacesIllFormedPartsAsPythonDoes) {
  for (const auto& [bytes, text] : kTexts) {
    EXPECT_EQ(tiny_tokenizer().decode(byte_ids(bytes)), text) << bytes;
  }
}

TEST(StreamDecoder, JoinedTextIsTheDecodedTextAndEachPartIsComplete) {
  for (const auto& [bytes, text] : kTexts) {
    StreamDecoder decoder(tiny_tokenizer());
    std::string joined;
    for (const TokenId id : byte_ids(bytes)) {
      const std::string part = decoder.push(id);
      EXPECT_TRUE(is_complete(part));
      joined += part;
    }
    joined += decoder.flush();
    EXPECT_EQ(joined, text) << bytes;
    EXPECT_EQ(decoder.flush(), "");
  }
}

TEST(StreamDecoder, AtEveryCutTheHeldPartIsShorterThanACharacter) {
  const std::string text = "a\u00e9\u4f60\U0001F642z\U0001F680";
  const std::vector<TokenId> ids = byte_ids(text);
  for (size_t cut = 0; cut <= ids.size(); ++cut) {
    StreamDecoder decoder(tiny_tokenizer());
    std::string shown;
    for (size_t i = 0; i < cut; ++i) shown += decoder.push(ids[i]);
    EXPECT_TRUE(is_complete(shown));
    EXPECT_EQ(shown, text.substr(0, shown.size()));
    EXPECT_LE(cut - shown.size(), 3u);
    const bool held = shown.size() < cut;
    EXPECT_EQ(decoder.flush(), held ? "\uFFFD" : "");
  }
}

TEST(StreamDecoder, AGoldenReplyStreamsToItsText) {
  for (const Json& prompt : tiny_goldens()["prompts"]) {
    StreamDecoder decoder(tiny_tokenizer());
    std::string joined;
    for (const Json& id : prompt["bf16"]["greedy"]) joined += decoder.push(id.get<TokenId>());
    EXPECT_EQ(joined + decoder.flush(), prompt["bf16"]["text"].get<std::string>());
  }
}

}  // namespace
}  // namespace sluice
