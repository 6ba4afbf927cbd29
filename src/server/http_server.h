// The one wrapper of Boost.Beast and Asio: connections, limits and time-outs, a handler's replies
// on the wire. Two threads serve all connections, so that a large body being parsed on one of them
// holds up nobody on the other. Thread-safe.
//
// A client that is gone loses its reply object within a second. One that only closed its sending
// half still gets its reply: the server tells the two apart by sending a little and looking whether
// that is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "server/http.h"

namespace sluice {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // an address, or a name that resolves to one
  uint16_t port = 0;               // 0: any free one
  size_t header_bytes_max = 16 << 10;
  size_t body_bytes_max = 32 << 20;      // a million tokens of text are about 4 MB
  size_t bodies_bytes_max = 256u << 20;  // of all requests being read together
  int64_t connections_max = 4096;
  // Seconds: an idle connection, a header from its first byte, a body or a reply that makes less
  // than bytes_per_s_min on average after its first body_s.
  double idle_s = 75.0;
  double header_s = 10.0;
  double body_s = 30.0;
  double bytes_per_s_min = 16384.0;
  double keep_alive_s = 10.0;  // silence of an event stream
};

class HttpServer {
 public:
  // Listens and serves until stop(). `handler` outlives this object. kInvalid, kIo: the address
  // cannot be listened on; names it.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler& handler);
  ~HttpServer();

  uint16_t port() const;
  int64_t n_connections() const;
  // Closes everything and destroys all replies; returns when that is done. `wake` functions may be
  // called until this object is destroyed.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
