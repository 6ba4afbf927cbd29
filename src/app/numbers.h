// Numbers as they are typed on a command line: strict, whole text, decimal. Pure functions.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// The number that `text` spells, between `least` and `most`; kInvalid names `option` and the range.
template <class T>
Result<T> parse_number(std::string_view option, std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  if (whole && value >= least && value <= most) return value;
  const auto spell = [](T bound) {
    char buffer[32];
    const auto spelled = std::to_chars(buffer, buffer + sizeof buffer, bound);
    return std::string(buffer, spelled.ptr);
  };
  return Error{Code::kInvalid, std::string(option) + " \"" + std::string(text) +
                                   "\" is not a number between " + spell(least) + " and " +
                                   spell(most)};
}

}  // namespace sluice
