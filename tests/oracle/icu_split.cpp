// icu_split COUNT < STRINGS: compares the pieces of text/splitter.h with those that ICU's regular
// expressions find with the vocabulary's pattern (spec 6.2), for each JSON string of standard
// input, one a line; there must be COUNT of them. Prints each difference, at most 20.
//
// A string with a letter, mark or number that ICU's Unicode does not have (ICU 72: 15.0, our table:
// 16.0) is counted and left out. Every other difference is a fault of one of the two.
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/uversion.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/splitter.h"
#include "text/unicode.h"

namespace sluice {
namespace {

constexpr int kShownMax = 20;

// The pattern in ICU's syntax, where a class intersection stands in brackets of its own.
constexpr char kPattern[] =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*)"
    R"([[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]+)"
    R"([[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+)"
    R"(|\s+(?!\S))"
    R"(|\s+)";

// Pieces as ends in bytes.
std::vector<size_t> our_ends(const std::string& text) {
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size(); ends.push_back(at)) at += next_piece(text, at);
  return ends;
}

class IcuSplitter {
 public:
  IcuSplitter() {
    UErrorCode problem = U_ZERO_ERROR;
    matcher_ =
        std::make_unique<icu::RegexMatcher>(icu::UnicodeString(kPattern, -1, US_INV), 0, problem);
    CHECK(U_SUCCESS(problem));
    matcher_->setStackLimit(0, problem);  // no limit: long runs backtrack deeply
    CHECK(U_SUCCESS(problem));
  }

  static bool knows(const std::string& text) {
    const icu::UnicodeString units = icu::UnicodeString::fromUTF8(text);
    for (int32_t at = 0; at < units.length(); at = units.moveIndex32(at, 1)) {
      const UChar32 c = units.char32At(at);
      const bool classless = CharTable::get()[static_cast<uint32_t>(c)] == 0;
      if (!classless && u_charType(c) == U_UNASSIGNED) return false;
    }
    return true;
  }

  // A gap between two matches counts as a piece, which ours then lacks.
  std::vector<size_t> ends(const std::string& text) {
    const icu::UnicodeString units = icu::UnicodeString::fromUTF8(text);
    UErrorCode problem = U_ZERO_ERROR;
    matcher_->reset(units);
    std::vector<size_t> ends;
    size_t bytes = 0;
    int32_t from = 0;
    const auto step_to = [&](int32_t unit) {
      if (unit == from) return;
      std::string piece;
      units.tempSubStringBetween(from, unit).toUTF8String(piece);
      from = unit;
      ends.push_back(bytes += piece.size());
    };
    while (matcher_->find(problem)) {
      step_to(matcher_->start(problem));
      step_to(matcher_->end(problem));
    }
    step_to(units.length());
    CHECK(U_SUCCESS(problem));
    return ends;
  }

 private:
  std::unique_ptr<icu::RegexMatcher> matcher_;
};

std::string pieces_of(const std::string& text, const std::vector<size_t>& ends) {
  Json pieces = Json::array();
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return dump_json(pieces);
}

// True if there were `count` strings and all agreed.
Result<bool> compare(long count) {
  IcuSplitter icu;
  std::string line;
  long strings = 0, left_out = 0, different = 0, pieces = 0;
  for (; std::getline(std::cin, line); ++strings) {
    TRY(const Json json, parse_json(line, "standard input line " + std::to_string(strings + 1)));
    const std::string& text = json.get_ref<const std::string&>();
    if (!IcuSplitter::knows(text)) {
      ++left_out;
      continue;
    }
    const std::vector<size_t> ours = our_ends(text), theirs = icu.ends(text);
    pieces += static_cast<long>(theirs.size());
    if (ours == theirs) continue;
    if (++different > kShownMax) continue;
    std::printf("differs: %.300s\n  ours %.300s\n  ICU  %.300s\n", line.c_str(),
                pieces_of(text, ours).c_str(), pieces_of(text, theirs).c_str());
  }
  std::printf("ICU %s (Unicode %s): %ld strings, %ld left out, %ld pieces, %ld differ\n",
              U_ICU_VERSION, U_UNICODE_VERSION, strings, left_out, pieces, different);
  if (strings != count) std::printf("wanted %ld strings\n", count);
  return different == 0 && strings == count;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: icu_split COUNT < STRINGS\n");
    return 2;
  }
  const auto same = sluice::compare(std::atol(argv[1]));
  if (!same.ok()) std::fprintf(stderr, "icu_split: %s\n", same.error().what.c_str());
  return same.ok() && same.value() ? 0 : 1;
}
