#include "text/tokenizer.h"

#include "text/fixture.h"

namespace sluice {
namespace {

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      out.push_back(i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63]);
    }
  }
  return out;
}

TEST(Tokenizer, GoldenRawPromptsEncodeToTheirIds) {
  int seen = 0;
  for (const Json& prompt : tiny_goldens()["prompts"]) {
    if (prompt["kind"] != "raw") continue;
    const auto text = prompt["text"].get<std::string>();
    const auto ids = prompt["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tiny_tokenizer().encode(text), ids) << prompt["name"];
    EXPECT_EQ(tiny_tokenizer().decode(ids), text);
    ++seen;
  }
  EXPECT_EQ(seen, 8);
}

TEST(Tokenizer, SpecialsHaveTheirSpellingsAndIds) {
  const Tokenizer& t = tiny_tokenizer();
  EXPECT_EQ(t.vocab_size(), 4096);
  EXPECT_EQ(t.special_base(), 3840);
  EXPECT_EQ(t.special("[BOS]"), 3840);
  EXPECT_EQ(t.special("<|reserved_token_3848|>"), 3848);
  EXPECT_EQ(t.special("<|reserved_token_3840|>"), std::nullopt);
  EXPECT_EQ(t.special("[PAD]"), 4095);
  EXPECT_EQ(t.special("<|nothing|>"), std::nullopt);
  EXPECT_EQ(t.bytes(3843), "<|open|>");
  EXPECT_FALSE(t.is_special(3839));
  EXPECT_TRUE(t.is_special(3840));
  EXPECT_TRUE(t.is_special(4095));
  EXPECT_FALSE(t.is_special(4096));
  EXPECT_EQ(t.control().end_of_msg, 3842);
  EXPECT_EQ(t.control().open, 3843);
  EXPECT_EQ(t.control().close, 3844);
  EXPECT_EQ(t.control().sep, 3845);
}

TEST(Tokenizer, OnlyTheSpecialEntryPointKnowsSpellings) {
  const Tokenizer& t = tiny_tokenizer();
  const std::string text = "a <|open|> b [BOS]<osagent_mode> c<|sep|>";
  for (const TokenId id : t.encode(text)) EXPECT_FALSE(t.is_special(id));
  std::vector<TokenId> want = t.encode("a ");
  const auto add = [&](const std::vector<TokenId>& ids) {
    want.insert(want.end(), ids.begin(), ids.end());
  };
  add({3843});
  add(t.encode(" b "));
  add({3840, 3905});
  add(t.encode(" c"));
  add({3845});
  EXPECT_EQ(t.encode_special(text), want);
  EXPECT_EQ(t.encode_special("<|open|"), t.encode("<|open|"));
  EXPECT_EQ(t.encode_special("<|open|<|open|>"), [&] {
    auto ids = t.encode("<|open|");
    ids.push_back(3843);
    return ids;
  }());
}

TEST(Tokenizer, EverySpecialSpellingIsPlainTextToTheOrdinaryEntryPoint) {
  const Tokenizer& t = tiny_tokenizer();
  for (TokenId id = t.special_base(); id < t.vocab_size(); ++id) {
    const std::string spelling(t.bytes(id));
    EXPECT_EQ(t.encode_special(spelling), std::vector<TokenId>{id});
    for (const TokenId part : t.encode(spelling)) EXPECT_FALSE(t.is_special(part));
    EXPECT_EQ(t.decode(t.encode(spelling)), spelling);
  }
}

TEST(Tokenizer, SegmentsAreEncodedOneByOne) {
  const Tokenizer& t = tiny_tokenizer();
  const std::vector<Segment> segments = {
      {"<|open|>", true}, {"mess", false}, {"age", false}, {"<|sep|>", false}};
  std::vector<TokenId> want = {3843};
  for (const char* text : {"mess", "age", "<|sep|>"}) {
    for (const TokenId id : t.encode(text)) want.push_back(id);
  }
  EXPECT_EQ(t.encode(segments), want);
  EXPECT_NE(t.encode("message").size(), t.encode("mess").size() + t.encode("age").size());
}

TEST(Tokenizer, AnyBytesSurviveARoundTrip) {
  const Tokenizer& t = tiny_tokenizer();
  uint32_t state = 3;
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (int i = 0; i < 50; ++i) {
      state = state * 1664525 + 1013904223;
      bytes.push_back(static_cast<char>(state >> 24));
    }
    std::string joined;
    for (const TokenId id : t.encode(bytes)) joined += t.bytes(id);
    ASSERT_EQ(joined, bytes);
  }
  EXPECT_TRUE(t.encode("").empty());
}

// Beyond 25,000 characters of one kind the text is cut: two encodings side by side.
TEST(Tokenizer, VeryLongRunsAreEncodedInParts) {
  const Tokenizer& t = tiny_tokenizer();
  for (const std::string unit : {"a", " ", "\U0001F642"}) {
    std::string part;
    for (int i = 0; i < 25'000; ++i) part += unit;
    std::vector<TokenId> want = t.encode(part);
    for (const TokenId id : t.encode(unit)) want.push_back(id);
    EXPECT_EQ(t.encode(part + unit), want);
  }
}

TEST(Tokenizer, AMovedTokenizerEncodesAsBefore) {
  Tokenizer copy = tiny_tokenizer();
  const Tokenizer moved = std::move(copy);
  EXPECT_EQ(moved.encode_special("Hi<|sep|>"), tiny_tokenizer().encode_special("Hi<|sep|>"));
}

// The real vocabulary's size, filled with made-up words.
TEST(Tokenizer, HoldsAVocabularyOfTheSizeOfK3) {
  constexpr int kRanks = 163'584;
  std::string model;
  for (int i = 0; i < kRanks; ++i) {
    const std::string token =
        i < 256 ? std::string(1, static_cast<char>(i)) : "w" + std::to_string(i);
    model += base64(token) + " " + std::to_string(i) + "\n";
  }
  const auto parsed = Tokenizer::parse(model, R"({"added_tokens_decoder": {
      "163584": {"content": "[BOS]"}, "163586": {"content": "<|end_of_msg|>"},
      "163587": {"content": "<|open|>"}, "163588": {"content": "<|close|>"},
      "163589": {"content": "<|sep|>"}, "163839": {"content": "[PAD]"}}})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().what;
  const Tokenizer& t = parsed.value();
  EXPECT_EQ(t.vocab_size(), 163'840);
  EXPECT_EQ(t.control().end_of_msg, 163'586);
  EXPECT_EQ(t.special("<|reserved_token_163837|>"), 163'837);
  EXPECT_EQ(t.bytes(163'583), "w163583");
  for (TokenId id = 256; id < kRanks; ++id) {
    ASSERT_EQ(t.bytes(id), "w" + std::to_string(id));
  }
  EXPECT_EQ(t.encode("w"), std::vector<TokenId>{'w'});
}

}  // namespace
}  // namespace sluice
