#include "engine/stop_strings.h"

#include <algorithm>

namespace sluice {
namespace {

// Length of the longest end of `text` that is a proper beginning of `stop`.
size_t held_length(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

std::string StopMatcher::feed(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t cut = std::string::npos;
  size_t hold = 0;
  for (const std::string& stop : stops_) {
    cut = std::min(cut, held_.find(stop));
    hold = std::max(hold, held_length(held_, stop));
  }
  stopped_ = cut != std::string::npos;
  if (!stopped_) cut = held_.size() - hold;
  std::string out = held_.substr(0, cut);
  held_.erase(0, stopped_ ? held_.size() : cut);
  return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

}  // namespace sluice
