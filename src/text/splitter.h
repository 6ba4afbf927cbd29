// Cuts text into the pieces that byte-pair merging may not cross (spec 6.2, 6.4). A hand-written
// matcher with the results of the vocabulary's regular expression, in time linear in the text.
// Thread-safe.
//
// Input is any byte string. A byte that belongs to no well-formed UTF-8 character counts as one
// character of the class of U+FFFD (a symbol), and stays in its piece as it is.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

// Pre-splitting limits in characters (code points).
constexpr size_t kSliceChars = 400'000;
constexpr size_t kSameClassRunChars = 25'000;

// Length in bytes, >= 1, of the piece that begins at byte `at` < text.size(). Successive calls
// partition `text`; what stands before `at` does not matter.
size_t next_piece(std::string_view text, size_t at);

// Hands out the parts of a text that are split each by itself: slices of kSliceChars characters,
// cut wherever more than kSameClassRunChars characters of one kind (Python's isspace() or not)
// follow one another. Runs are counted from the previous cut. One owner.
class PreSplitter {
 public:
  explicit PreSplitter(std::string_view text) : text_(text) {}

  // The next part; empty at the end of the text.
  std::string_view next();

 private:
  std::string_view text_;
  size_t at_ = 0;           // bytes handed out
  size_t slice_chars_ = 0;  // characters of the present slice handed out
};

}  // namespace sluice
