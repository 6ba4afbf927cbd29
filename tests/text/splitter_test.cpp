#include "text/splitter.h"

#include "text/fixture.h"

namespace sluice {
namespace {

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = next_piece(text, at);
    pieces.emplace_back(text.substr(at, bytes));
    at += bytes;
  }
  return pieces;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  PreSplitter splitter(text);
  for (auto part = splitter.next(); !part.empty(); part = splitter.next()) parts.emplace_back(part);
  return parts;
}

std::string repeated(const std::string& unit, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += unit;
  return text;
}

TEST(Splitter, EveryFixtureSplitsAsTheRegularExpressionSplitsIt) {
  const Json splits = json_of(read_source_file("tests/text/splits.json"));
  ASSERT_GT(splits["splits"].size(), 100u);
  for (const Json& row : splits["splits"]) {
    EXPECT_EQ(pieces_of(row["text"].get<std::string>()),
              row["pieces"].get<std::vector<std::string>>())
        << row.dump();
  }
}

TEST(Splitter, AnInvalidByteIsASymbolAndIsKept) {
  EXPECT_EQ(pieces_of("ab\xFF\xFEz"), (std::vector<std::string>{"ab", "\xFF\xFE", "z"}));
  EXPECT_EQ(pieces_of(" \x80x"), (std::vector<std::string>{" \x80", "x"}));
  EXPECT_EQ(pieces_of("\xFFx"), (std::vector<std::string>{"\xFFx"}));
  EXPECT_EQ(pieces_of("\xF0\x9F\x98"), (std::vector<std::string>{"\xF0\x9F\x98"}));
  EXPECT_EQ(pieces_of("\xED\xA0\x80 a"), (std::vector<std::string>{"\xED\xA0\x80", " a"}));
  EXPECT_EQ(pieces_of("\xC0\xAF"), (std::vector<std::string>{"\xC0\xAF"}));
}

// tiktoken's regular expressions know Unicode 16.0 (docs/ORACLES.md).
TEST(Splitter, LettersOfUnicode16AreLetters) {
  EXPECT_EQ(pieces_of("\u1C89'M \u1C8Ax"), (std::vector<std::string>{"\u1C89'M", " \u1C8Ax"}));
  EXPECT_EQ(pieces_of("a\U00013460's"), (std::vector<std::string>{"a\U00013460's"}));
  EXPECT_EQ(pieces_of("a\U0002EBF0b"), (std::vector<std::string>{"a", "\U0002EBF0", "b"}));
  // Of 17.0: not assigned, so a symbol.
  EXPECT_EQ(pieces_of("a\uA7CE'M"), (std::vector<std::string>{"a", "\uA7CE'", "M"}));
}

TEST(Splitter, RandomBytesArePartitioned) {
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525 + 1013904223;
      text.push_back(static_cast<char>(state >> 24));
    }
    std::string joined;
    for (const std::string& piece : pieces_of(text)) {
      ASSERT_FALSE(piece.empty());
      joined += piece;
    }
    ASSERT_EQ(joined, text);
  }
}

// A matcher that looked at the rest of the run once per piece would not end within the time limit.
TEST(Splitter, AMegabyteOfOneKindIsSplit) {
  constexpr size_t kCount = size_t{1} << 20;
  EXPECT_EQ(pieces_of(std::string(kCount, 'a')).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kCount, ' ')).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kCount, 'A')).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kCount, '\n')).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kCount, '1')).size(), kCount / 3 + 1);
  EXPECT_EQ(pieces_of(repeated("aA", kCount / 2)).size(), kCount / 2 + 1);
  EXPECT_EQ(pieces_of(repeated("\u0301A", kCount / 4)).size(), 2u);
  EXPECT_EQ(pieces_of(repeated("漢", kCount / 4)).size(), 1u);
  EXPECT_EQ(pieces_of(std::string(kCount, ' ') + "a").size(), 2u);
}

TEST(PreSplitter, CutsWherePythonCuts) {
  const Json splits = json_of(read_source_file("tests/text/splits.json"));
  ASSERT_GT(splits["cuts"].size(), 10u);
  for (const Json& row : splits["cuts"]) {
    std::string text;
    for (const Json& run : row["runs"]) {
      text += repeated(run[0].get<std::string>(), run[1].get<size_t>());
    }
    std::vector<size_t> chars;
    std::string joined;
    for (const std::string& part : parts_of(text)) {
      size_t count = 0;
      for (const char c : part) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
      chars.push_back(count);
      joined += part;
    }
    EXPECT_EQ(chars, row["parts"].get<std::vector<size_t>>()) << row.dump();
    EXPECT_EQ(joined, text);
  }
}

TEST(PreSplitter, CountsAnInvalidByteAsOneCharacter) {
  const std::vector<std::string> parts = parts_of(std::string(25'001, '\xFF'));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].size(), 25'000u);
}

}  // namespace
}  // namespace sluice
