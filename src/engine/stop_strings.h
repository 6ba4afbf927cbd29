// Cuts streamed text before the first stop string. Text that may be the beginning of one is held
// back until it is decided. One owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

class StopMatcher {
 public:
  // `stops` are not empty strings; without any, text passes through at once.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that is certain to precede every stop string, `text` appended to what was held back.
  std::string feed(std::string_view text);
  // What is still held back, when no more text comes; nothing after a stop string.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice
