// HTTP as the rest of the server sees it: a request as a value, and a reply at once, later, or as a
// stream of events. Nothing here knows sockets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice {

// Names and values.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;                          // as sent: GET, POST, ...
  std::string path;                            // without the query
  std::map<std::string, std::string> headers;  // names in lower case; repeated ones joined by ", "
  std::string body;

  // Empty when absent.
  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  HttpHeaders headers = {};
};

// A reply that is whole only later. Used by one thread at a time, but for `wake`. Destroyed when
// the reply is sent, or when the client is gone: then whatever works for it should stop.
class HttpLater {
 public:
  virtual ~HttpLater() = default;
  // `wake` may be called from any thread, also after this object is destroyed.
  virtual void on_ready(std::function<void()> wake) = 0;
  // The response, once it is there.
  virtual std::optional<HttpResponse> whole() = 0;
};

// A stream of server-sent events. As HttpLater.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual void on_ready(std::function<void()> wake) = 0;
  // Headers beside those of any stream.
  virtual HttpHeaders headers() const { return {}; }
  // Appends what is ready; false when nothing follows it.
  virtual bool take(std::string& out) = 0;
  // Appends what tells the client, after a time of silence, that the server lives.
  virtual void keep_alive(std::string& out) = 0;
};

using HttpReply =
    std::variant<HttpResponse, std::unique_ptr<HttpLater>, std::unique_ptr<HttpStream>>;

// Answers requests. Thread-safe: called from all of the server's threads.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Looks at a request without its body; a response ends it there, before the body is read.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& head) = 0;
  virtual HttpReply handle(HttpRequest request) = 0;
  // What a client gets whose request broke a rule of the protocol or a limit.
  virtual HttpResponse protocol_error(int status, std::string_view what) = 0;
  // Headers of every reply.
  virtual HttpHeaders common_headers() const { return {}; }
};

}  // namespace sluice
