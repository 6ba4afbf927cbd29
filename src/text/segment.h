// A stretch of a rendered prompt that is tokenised by itself (spec 7.1). Plain value.
#pragma once

#include <string>

namespace sluice {

struct Segment {
  std::string text;  // not empty
  bool markup;       // true: spellings of special tokens in `text` become their ids

  bool operator==(const Segment&) const = default;
};

}  // namespace sluice
