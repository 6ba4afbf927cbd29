// The server's endpoints: which request goes where, who may ask, and what is answered while the
// model is being opened or the server shuts down. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/api_context.h"
#include "server/http.h"

namespace sluice {

struct ServiceOptions {
  std::vector<std::string> api_keys;
  bool local_only = true;   // as Access has it
  std::string cors_origin;  // pages of this origin may use the server; "*": all; empty: none
  // One line an event, for people; may be empty. Thread-safe.
  std::function<void(const std::string&)> log;
  bool log_bodies = false;                 // requests' bodies too: prompts
  std::function<int64_t()> n_connections;  // for /metrics; may be empty
};

class Service final : public HttpHandler {
 public:
  explicit Service(ServiceOptions options);

  // From here on requests are served. `context` and what it borrows outlive this object.
  void set_ready(const ApiContext& context);
  // /health says draining from here on; the scheduler refuses what comes.
  void set_draining() { draining_ = true; }

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  HttpReply handle(HttpRequest request) override;
  HttpResponse protocol_error(int status, std::string_view what) override;
  HttpHeaders common_headers() const override;

 private:
  HttpReply route(const ApiContext& context, const HttpRequest& request);
  HttpResponse health() const;

  const ServiceOptions options_;
  const Access access_;
  std::atomic<const ApiContext*> context_{nullptr};
  std::atomic<bool> draining_{false};
};

}  // namespace sluice
