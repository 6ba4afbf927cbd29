// Who may use the server: API keys, and without them the names of this machine alone. Immutable;
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/http.h"

namespace sluice {

class Access {
 public:
  // `local_only`: without keys, a request must name this machine in its Host header. A web page
  // elsewhere could otherwise reach the server through the user's browser (DNS rebinding).
  Access(const std::vector<std::string>& api_keys, bool local_only);

  // What is wrong with a request's header, or nothing.
  std::optional<ApiError> refuse(const HttpRequest& head) const;

 private:
  bool knows(std::string_view key) const;

  std::vector<std::string> key_hashes_;  // SHA-256, so that comparing tells nothing of lengths
  bool local_only_;
};

}  // namespace sluice
