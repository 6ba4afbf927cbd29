#include "server/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/byte_budget.h"
#include "server/http_wire.h"
#include "server/socket_peer.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr int kThreads = 2;
constexpr double kPollS = 0.25;   // how often a half-closed client is looked at
constexpr double kLingerS = 2.0;  // for a client that still sends what was refused
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // out of descriptors

Clock::duration clock_time(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
}

class Connection;

// What all connections share.
struct Shared {
  Shared(const HttpServerOptions& given, HttpHandler& answers)
      : options(given), handler(answers), bodies(given.bodies_bytes_max) {}

  const HttpServerOptions& options;
  HttpHandler& handler;
  std::atomic<int64_t> n_connections{0};
  ByteBudget bodies;  // being read
  Mutex mutex;
  bool stopping GUARDED_BY(mutex) = false;
  std::map<Connection*, std::weak_ptr<Connection>> connections GUARDED_BY(mutex);
};

// What a connection waits for while its reply is made. Lives on the connection's strand; a wake
// from outside is posted there.
struct Waiter : std::enable_shared_from_this<Waiter> {
  explicit Waiter(const asio::any_io_executor& executor) : timer(executor) {}

  asio::steady_timer timer;
  bool woken = false;
  bool readable = false;

  void notify() {
    woken = true;
    timer.cancel();
  }
  std::function<void()> wake() {
    return [self = shared_from_this()] {
      asio::post(self->timer.get_executor(), [self] { self->notify(); });
    };
  }
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : socket_(std::move(socket)), deadline_(socket_.get_executor()), shared_(shared) {
    ++shared_.n_connections;
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  }
  ~Connection() {
    Lock lock(shared_.mutex);
    shared_.connections.erase(this);
    --shared_.n_connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  asio::awaitable<void> serve() {
    if (!enrol()) co_return;
    if (shared_.n_connections > shared_.options.connections_max) {
      keep_open_ = false;
      co_await refuse(503, "the server has too many connections; try again later");
    }
    while (keep_open_ && !closed_) {
      const bool more = co_await wait_for_request();
      if (!more) break;
      co_await serve_one();
    }
    if (!closed_) co_await linger();
    disarm();
  }

  // Ends it from outside: every wait returns at once.
  void close() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->closed_ = true;
      error_code ignored;
      self->socket_.close(ignored);
      if (self->waiter_) self->waiter_->notify();
    });
  }

 private:
  using Parser = http::request_parser<http::string_body>;
  const HttpServerOptions& options() const { return shared_.options; }
  WireForm form() const { return {.keep_open = keep_open_, .http_1_0 = version_ < 11}; }

  // False when the server is stopping.
  bool enrol() {
    Lock lock(shared_.mutex);
    shared_.connections.emplace(this, weak_from_this());
    return !shared_.stopping;
  }

  // Cancels what the socket does when the time is up.
  void arm(double seconds) {
    expired_ = false;
    deadline_.expires_after(clock_time(seconds));
    deadline_.async_wait([self = shared_from_this(), turn = ++turn_](error_code error) {
      if (error || turn != self->turn_) return;
      self->expired_ = true;
      error_code ignored;
      self->socket_.cancel(ignored);
    });
  }
  void arm_for(size_t bytes) {
    arm(options().body_s + static_cast<double>(bytes) / options().bytes_per_s_min);
  }
  void disarm() {
    ++turn_;
    deadline_.cancel();
  }

  // Until the first byte of a request; false when none comes.
  asio::awaitable<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    buffer_.shrink_to_fit();  // an idle connection holds no memory
    arm(options().idle_s);
    const auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, kAwait);
    disarm();
    co_return !error;
  }

  asio::awaitable<void> serve_one() {
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(options().header_bytes_max));
    parser.body_limit(options().body_bytes_max);
    arm(options().header_s);
    error_code error;
    co_await http::async_read_header(socket_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    disarm();
    if (error) {
      co_await answer_read_error(error);
      co_return;
    }
    version_ = parser.get().version();
    keep_open_ = parser.get().keep_alive();
    HttpRequest request = head_of(parser);
    if (std::optional<HttpResponse> refused = shared_.handler.refuse(request)) {
      if (!parser.is_done()) keep_open_ = false;  // the body stays unread
      co_await send(std::move(*refused));
      co_return;
    }
    const bool read = co_await read_body(parser);
    if (!read) co_return;
    request.body = std::move(parser.get().body());
    co_await reply_to(std::move(request));
  }

  static HttpRequest head_of(const Parser& parser) {
    HttpRequest request;
    request.method = std::string(parser.get().method_string());
    const std::string_view target(parser.get().target().data(), parser.get().target().size());
    request.path = std::string(target.substr(0, target.find('?')));
    for (const auto& field : parser.get().base()) {
      std::string name(field.name_string());
      std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      });
      const std::string value(field.value());
      const auto [at, added] = request.headers.emplace(std::move(name), value);
      if (!added) at->second += ", " + value;
    }
    return request;
  }

  // False when the request was answered with an error instead.
  asio::awaitable<bool> read_body(Parser& parser) {
    if (parser.is_done()) co_return true;
    const auto length = parser.content_length();
    const size_t bytes = length ? static_cast<size_t>(*length) : options().body_bytes_max;
    const ByteBudget::Claim claim(shared_.bodies, bytes);
    if (!claim.granted()) {
      keep_open_ = false;
      HttpResponse busy = shared_.handler.protocol_error(
          503, "the server is reading too many large requests; try again later");
      busy.headers.emplace_back("Retry-After", "5");
      co_await send(std::move(busy));
      co_return false;
    }
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const bool sent = co_await write(std::string(kContinue));
      if (!sent) co_return false;
    }
    arm_for(bytes);
    error_code error;
    co_await http::async_read(socket_, buffer_, parser,
                              asio::redirect_error(asio::use_awaitable, error));
    disarm();
    if (error) co_await answer_read_error(error);
    co_return !error;
  }

  asio::awaitable<void> answer_read_error(error_code error) {
    keep_open_ = false;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      co_await refuse(431, "the request's header is larger than " +
                               std::to_string(options().header_bytes_max) + " bytes");
    } else if (error == http::error::body_limit) {
      co_await refuse(413, "the request's body is larger than " +
                               std::to_string(options().body_bytes_max) + " bytes");
    } else if (expired_) {
      co_await refuse(408, "the request did not arrive in time");
    } else if (is_malformed(error)) {
      co_await refuse(400, "the request is not HTTP: " + error.message());
    } else {
      peer_left_ = true;
    }
  }

  static bool is_malformed(error_code error) {
    const error_code example = http::error::bad_method;
    return error.category() == example.category() && error != http::error::end_of_stream &&
           error != http::error::partial_message;
  }

  asio::awaitable<void> refuse(int status, const std::string& what) {
    co_await send(shared_.handler.protocol_error(status, what));
  }

  asio::awaitable<void> reply_to(HttpRequest request) {
    HttpReply reply = shared_.handler.handle(std::move(request));
    if (auto* response = std::get_if<HttpResponse>(&reply)) {
      co_await send(std::move(*response));
    } else if (auto* later = std::get_if<std::unique_ptr<HttpLater>>(&reply)) {
      co_await send_later(**later);
    } else {
      co_await send_stream(*std::get<std::unique_ptr<HttpStream>>(reply));
    }
  }

  asio::awaitable<void> send_later(HttpLater& later) {
    const auto waiter = watch();
    later.on_ready(waiter->wake());
    while (true) {
      if (std::optional<HttpResponse> response = later.whole()) {
        unwatch();
        co_await send(std::move(*response));
        co_return;
      }
      co_await wait(*waiter, options().idle_s);
      const bool stays = co_await peer_stays(*waiter, std::string(kProcessing));
      if (!stays) co_return;
    }
  }

  asio::awaitable<void> send_stream(HttpStream& stream) {
    const auto waiter = watch();
    stream.on_ready(waiter->wake());
    // HTTP/1.0, as some proxies speak, has no chunks: the body ends with the connection.
    const bool chunked = version_ >= 11;
    if (!chunked) keep_open_ = false;
    // g++ 12 destroys the operands of ?: in an argument of co_await twice: not there.
    const auto framed = [chunked](std::string text) { return chunked ? chunk_text(text) : text; };
    HttpHeaders headers = stream.headers();
    for (auto& each : shared_.handler.common_headers()) headers.push_back(each);
    bool sent = co_await write(event_stream_head(headers, form()));
    auto last_sent = Clock::now();
    for (bool more = true; sent && more;) {
      std::string text;
      more = stream.take(text);
      const Seconds silent = Clock::now() - last_sent;
      if (text.empty() && more && silent.count() >= options().keep_alive_s) stream.keep_alive(text);
      if (!text.empty()) {
        sent = co_await write(framed(text));
        last_sent = Clock::now();
        continue;
      }
      if (!more) break;
      co_await wait(*waiter, std::max(options().keep_alive_s - silent.count(), 0.001));
      sent = co_await peer_stays(*waiter, framed(": \n\n"));
    }
    unwatch();
    if (sent && chunked) co_await write(std::string(kLastChunk));
  }

  // Looks at the socket from here on until unwatch(): a client that leaves wakes the waiter.
  std::shared_ptr<Waiter> watch() {
    auto waiter = std::make_shared<Waiter>(socket_.get_executor());
    waiter_ = waiter;
    probed_ = false;
    // What came early hides whether the client leaves: that shows when a write fails.
    if (buffer_.size() > 0) return waiter;
    socket_.async_wait(tcp::socket::wait_read, [waiter](error_code error) {
      if (error) return;
      waiter->readable = true;
      waiter->notify();
    });
    return waiter;
  }

  void unwatch() {
    waiter_.reset();
    error_code ignored;
    socket_.cancel(ignored);
  }

  asio::awaitable<void> wait(Waiter& waiter, double seconds) {
    if (!waiter.woken) {
      waiter.timer.expires_after(clock_time(probed_ ? std::min(seconds, kPollS) : seconds));
      co_await waiter.timer.async_wait(kAwait);
    }
    waiter.woken = false;
  }

  // Whether anyone is left to read the reply. `probe`: what may be sent to find out.
  asio::awaitable<bool> peer_stays(Waiter& waiter, std::string probe) {
    if (closed_) co_return false;
    if (!waiter.readable) co_return true;
    const SocketPeer peer = look_at_peer(socket_.native_handle());
    if (peer == SocketPeer::kGone) {
      peer_left_ = true;
      keep_open_ = false;
      co_return false;
    }
    if (peer != SocketPeer::kHalfClosed || probed_) co_return true;
    // Nothing more can come from it: is it there at all?
    keep_open_ = false;
    probed_ = true;
    if (version_ < 11) co_return true;
    co_return co_await write(std::move(probe));
  }

  asio::awaitable<void> send(HttpResponse response) {
    for (auto& each : shared_.handler.common_headers()) response.headers.push_back(each);
    co_await write(response_text(response, form()));
  }

  asio::awaitable<bool> write(std::string text) {
    arm_for(text.size());
    const auto done = co_await asio::async_write(socket_, asio::buffer(text), kAwait);
    disarm();
    if (!std::get<0>(done)) co_return true;
    keep_open_ = false;
    peer_left_ = true;
    co_return false;
  }

  // Reads for a moment what a client still sends: closing at once could destroy the answer.
  asio::awaitable<void> linger() {
    error_code ignored;
    if (peer_left_) co_return;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    arm(kLingerS);
    std::array<char, 16384> sink;
    // Many clients look at the answer only when they have sent all of a body that is too large.
    for (size_t total = 0; total < 2 * options().body_bytes_max;) {
      const auto [error, n] = co_await socket_.async_read_some(asio::buffer(sink), kAwait);
      if (error) break;
      total += n;
    }
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  uint64_t turn_ = 0;     // of the deadline: an earlier one that is late does nothing
  bool expired_ = false;  // the last deadline was not met
  bool closed_ = false;   // from outside
  Shared& shared_;
  std::shared_ptr<Waiter> waiter_;  // while a reply is being made
  beast::flat_buffer buffer_;
  unsigned version_ = 11;
  bool keep_open_ = true;
  bool peer_left_ = false;
  bool probed_ = false;  // of the reply at hand: the client closed its half and was sent something
};

asio::awaitable<void> serve_connection(std::shared_ptr<Connection> connection) {
  co_await connection->serve();
}

asio::awaitable<void> accept_connections(tcp::acceptor& acceptor, Shared& shared) {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    const asio::any_io_executor strand = asio::make_strand(acceptor.get_executor());
    tcp::socket socket(strand);
    const auto [error] = co_await acceptor.async_accept(socket, kAwait);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    auto connection = std::make_shared<Connection>(std::move(socket), shared);
    asio::co_spawn(strand, serve_connection(std::move(connection)), asio::detached);
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& given, HttpHandler& handler)
      : options(given), shared(options, handler) {}

  Status listen() {
    const std::string address = options.host + ":" + std::to_string(options.port);
    error_code error;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
    if (error || found.empty()) {
      return Error{Code::kInvalid, "cannot listen on " + address + ": " + error.message() +
                                       "; give an address of this machine with --host"};
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{Code::kIo, "cannot listen on " + address + ": " + error.message() +
                                  "; choose another --port or --host"};
    }
    port = acceptor.local_endpoint(error).port();
    return Ok{};
  }

  void serve() {
    asio::co_spawn(context, accept_connections(acceptor, shared), asio::detached);
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([this] { context.run(); });
  }

  HttpServerOptions options;
  Shared shared;
  asio::io_context context;
  tcp::acceptor acceptor{context};
  uint16_t port = 0;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  TRY_OK(impl->listen());
  impl->serve();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port; }
int64_t HttpServer::n_connections() const { return impl_->shared.n_connections; }

void HttpServer::stop() {
  asio::post(impl_->context, [impl = impl_.get()] {
    error_code ignored;
    impl->acceptor.close(ignored);
  });
  std::vector<std::shared_ptr<Connection>> connections;
  {
    Lock lock(impl_->shared.mutex);
    impl_->shared.stopping = true;
    for (const auto& [raw, weak] : impl_->shared.connections) {
      if (auto connection = weak.lock()) connections.push_back(std::move(connection));
    }
  }
  for (const auto& connection : std::exchange(connections, {})) connection->close();
  for (std::thread& thread : impl_->threads) thread.join();  // they end when nothing is left to do
  impl_->threads.clear();
}

}  // namespace sluice
