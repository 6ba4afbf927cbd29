#include "server/access.h"

#include <algorithm>
#include <array>

#include "base/sha256.h"

namespace sluice {
namespace {

std::string hash_of(std::string_view key) {
  Sha256 hash;
  hash.update(key);
  return hash.hex();
}

// The time it takes does not depend on where they differ.
bool same_hash(const std::string& a, const std::string& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool names_this_machine(std::string_view host) {
  constexpr std::array<std::string_view, 3> kNames = {"localhost", "127.0.0.1", "[::1]"};
  return std::ranges::find(kNames, without_port(host)) != kNames.end();
}

}  // namespace

Access::Access(const std::vector<std::string>& api_keys, bool local_only)
    : local_only_(local_only && api_keys.empty()) {
  for (const std::string& key : api_keys) key_hashes_.push_back(hash_of(key));
}

bool Access::knows(std::string_view key) const {
  const std::string hash = hash_of(key);
  bool known = false;
  for (const std::string& each : key_hashes_) known |= same_hash(each, hash);
  return known;
}

std::optional<ApiError> Access::refuse(const HttpRequest& head) const {
  if (local_only_ && !names_this_machine(head.header("host"))) {
    return ApiError{.status = 403,
                    .message =
                        "without an API key the server answers only requests to localhost; "
                        "start it with --api-key, or with --no-auth",
                    .code = "host_not_allowed"};
  }
  if (key_hashes_.empty()) return std::nullopt;
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = head.header("authorization");
  const bool bearer = value.size() > kScheme.size() &&
                      std::ranges::equal(value.substr(0, kScheme.size()), kScheme, {}, [](char c) {
                        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
                      });
  if (bearer && knows(value.substr(kScheme.size()))) return std::nullopt;
  return ApiError{.status = 401,
                  .message = bearer ? "the API key is not known to this server"
                                    : "an API key is needed: send Authorization: Bearer KEY",
                  .code = "invalid_api_key"};
}

}  // namespace sluice
