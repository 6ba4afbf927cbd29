// Several texts in one fuzz input: they are divided by lines of four dashes, so that seeds stay
// readable. Pure function.
#pragma once

#include <string_view>
#include <vector>

namespace sluice {

// At least `n_min` sections; absent ones are empty.
inline std::vector<std::string_view> sections(std::string_view input, size_t n_min) {
  constexpr std::string_view kBorder = "\n----\n";
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = input.find(kBorder);
    parts.push_back(input.substr(0, end));
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + kBorder.size());
  }
  while (parts.size() < n_min) parts.emplace_back();
  return parts;
}

}  // namespace sluice
