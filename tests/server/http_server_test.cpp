// The HTTP server against a handler of the test's own, through real sockets.
#include "server/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice {
namespace {

class Client {
 public:
  explicit Client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  // Whether all of it was taken.
  bool send(const std::string& text) {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
  }
  // Until `end` has come, or the server closes, or patience ends.
  std::string receive_until(const std::string& end) {
    std::string text;
    char part[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t n = ::recv(fd_, part, sizeof part, 0);
      if (n <= 0) break;
      text.append(part, static_cast<size_t>(n));
    }
    return text;
  }
  std::string receive_all() { return receive_until(std::string(1, '\0')); }

 private:
  int fd_;
  bool connected_ = false;
};

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + more + "\r\n";
}

// Counts up; every event is ready at once.
class Numbers : public HttpStream {
 public:
  Numbers(int n, std::atomic<int>& alive) : n_(n), alive_(alive) { ++alive_; }
  ~Numbers() override { --alive_; }
  void on_ready(std::function<void()> wake) override { wake(); }
  bool take(std::string& out) override {
    // Longer than a small string holds, so that its memory is the heap's.
    out += "data: number " + std::to_string(made_) + " of many numbers, one after the other\n\n";
    return ++made_ < n_;
  }
  void keep_alive(std::string& out) override { out += ": still here\n\n"; }

 private:
  const int n_;
  int made_ = 0;
  std::atomic<int>& alive_;
};

// Never has an event.
class Silence : public HttpStream {
 public:
  explicit Silence(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~Silence() override { --alive_; }
  void on_ready(std::function<void()>) override {}
  bool take(std::string&) override { return true; }
  void keep_alive(std::string& out) override { out += ": still here, though nothing is said\n\n"; }

 private:
  std::atomic<int>& alive_;
};

// Whole once another thread has slept a little.
class Later : public HttpLater {
 public:
  ~Later() override { thread_.join(); }
  void on_ready(std::function<void()> wake) override {
    thread_ = std::thread([this, wake = std::move(wake)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      whole_ = true;
      wake();
    });
  }
  std::optional<HttpResponse> whole() override {
    if (!whole_) return std::nullopt;
    return HttpResponse{.body = "{\"late\":true}"};
  }

 private:
  std::thread thread_;
  std::atomic<bool> whole_{false};
};

// Whole at no time.
class Never : public HttpLater {
 public:
  explicit Never(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~Never() override { --alive_; }
  void on_ready(std::function<void()>) override {}
  std::optional<HttpResponse> whole() override { return std::nullopt; }

 private:
  std::atomic<int>& alive_;
};

class Handler : public HttpHandler {
 public:
  std::optional<HttpResponse> refuse(const HttpRequest& head) override {
    if (head.header("authorization") == "no") return HttpResponse{.status = 401, .body = "no"};
    return std::nullopt;
  }
  HttpReply handle(HttpRequest request) override {
    if (request.path == "/numbers") return std::make_unique<Numbers>(50, alive);
    if (request.path == "/silence") return std::make_unique<Silence>(alive);
    if (request.path == "/never") return std::make_unique<Never>(alive);
    if (request.path == "/later") return std::make_unique<Later>();
    return HttpResponse{.body = request.method + " " + request.path + " " + request.body};
  }
  HttpResponse protocol_error(int status, std::string_view what) override {
    return {.status = status, .body = std::string(what)};
  }
  std::atomic<int> alive{0};  // streams, and replies that never come
};

class Http : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    auto started = HttpServer::start(options, handler_);
    ASSERT_TRUE(started.ok()) << started.error().what;
    server_ = std::move(started).value();
  }
  uint16_t port() const { return server_->port(); }
  // Whether all streams end within ten seconds.
  bool streams_end() const {
    for (int i = 0; i < 1000 && handler_.alive > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return handler_.alive == 0;
  }
  Handler handler_;
  std::unique_ptr<HttpServer> server_;
};

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(Http, AnswersOnOneConnectionAsLongAsItIsKept) {
  start();
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_NE(client.receive_until("hello").find("200 OK"), std::string::npos);
  }
}

TEST_F(Http, StreamsEveryEventOnceManyTimesOver) {
  start();
  Client client(port());
  for (int i = 0; i < 20; ++i) {
    client.send(get("/numbers"));
    const std::string text = client.receive_until("\r\n0\r\n\r\n");
    EXPECT_EQ(count(text, "data: number "), 50u);
    EXPECT_NE(text.find("text/event-stream"), std::string::npos);
  }
  EXPECT_TRUE(streams_end());
}

TEST_F(Http, StreamsToAnOldClientUntilTheConnectionEnds) {
  start();
  Client client(port());
  client.send("GET /numbers HTTP/1.0\r\n\r\n");
  const std::string text = client.receive_all();
  EXPECT_EQ(count(text, "data: number "), 50u);
  EXPECT_EQ(text.find("chunked"), std::string::npos);
}

TEST_F(Http, SpeaksUpInASilentStream) {
  start({.keep_alive_s = 0.05});
  Client client(port());
  client.send(get("/silence"));
  std::string text;
  while (count(text, "still here") < 3) {
    const std::string more = client.receive_until("\n\n");
    ASSERT_FALSE(more.empty());
    text += more;
  }
}

TEST_F(Http, EndsTheStreamOfAClientThatLeft) {
  start({.keep_alive_s = 0.05});
  Client client(port());
  client.send(get("/silence"));
  client.receive_until("\r\n\r\n");
  EXPECT_EQ(handler_.alive, 1);
  client.close();
  EXPECT_TRUE(streams_end());
}

TEST_F(Http, SendsAReplyThatIsWholeLater) {
  start();
  Client client(port());
  client.send(get("/later"));
  EXPECT_NE(client.receive_until("true}").find("{\"late\":true}"), std::string::npos);
}

TEST_F(Http, EndsTheWorkForAReplyWhoseClientLeft) {
  start();
  Client client(port());
  client.send(get("/never"));
  for (int i = 0; i < 1000 && handler_.alive == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(handler_.alive, 1);
  client.close();
  EXPECT_TRUE(streams_end());
}

TEST_F(Http, AnswersAClientThatOnlyEndedItsOwnSide) {
  start();
  Client client(port());
  client.send(get("/later"));
  client.end_sending();
  EXPECT_NE(client.receive_all().find("{\"late\":true}"), std::string::npos);
}

TEST_F(Http, RefusesByTheHeaderAlone) {
  start();
  Client client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: test\r\nAuthorization: no\r\nContent-Length: 5\r\n\r\n");
  EXPECT_NE(client.receive_until("no").find(" 401 "), std::string::npos);
}

TEST_F(Http, NamesWhatIsTooLargeAndWhatIsNoHttp) {
  start({.header_bytes_max = 1024, .body_bytes_max = 1000});
  const auto answer = [this](const std::string& request) {
    Client client(port());
    client.send(request);
    return client.receive_all();
  };
  EXPECT_NE(answer("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n").find(" 413 "),
            std::string::npos);
  EXPECT_NE(answer(get("/", "A: " + std::string(2000, 'a') + "\r\n")).find(" 431 "),
            std::string::npos);
  EXPECT_NE(answer("not http at all\r\n\r\n").find(" 400 "), std::string::npos);
}

TEST_F(Http, TellsAClientThatSendsOnThatItsBodyIsTooLarge) {
  constexpr size_t kMax = 16 << 20;
  start({.body_bytes_max = kMax});
  Client client(port());
  const std::string body(2 * kMax - 100000, 'x');
  client.send("POST / HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_TRUE(client.send(body));  // many take a failure for the whole answer
  EXPECT_NE(client.receive_all().find(" 413 "), std::string::npos);
}

TEST_F(Http, LetsSlowAndHalfSentRequestsTimeOutWhileOthersAreServed) {
  start({.header_s = 0.2, .body_s = 0.2});
  Client half(port()), silent(port()), body(port());
  half.send("GET / HT");
  body.send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nab");
  Client good(port());
  good.send(get("/fine"));
  EXPECT_NE(good.receive_until("/fine").find("200 OK"), std::string::npos);
  EXPECT_NE(half.receive_all().find(" 408 "), std::string::npos);
  EXPECT_NE(body.receive_all().find(" 408 "), std::string::npos);
}

TEST_F(Http, HoldsHundredsOfIdleConnectionsAndStillAnswers) {
  start();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 400; ++i) idle.push_back(std::make_unique<Client>(port()));
  Client client(port());
  client.send(get("/fine"));
  EXPECT_NE(client.receive_until("/fine").find("200 OK"), std::string::npos);
}

TEST_F(Http, TurnsAwayConnectionsBeyondTheLimit) {
  start({.connections_max = 2});
  Client a(port()), b(port());
  a.send(get("/a"));
  b.send(get("/b"));
  a.receive_until("/a");
  b.receive_until("/b");
  Client c(port());
  c.send(get("/c"));
  EXPECT_NE(c.receive_all().find(" 503 "), std::string::npos);
}

TEST_F(Http, StopsWithStreamsUnderWay) {
  start();
  Client client(port());
  client.send(get("/silence"));
  client.receive_until("\r\n\r\n");
  server_->stop();
  EXPECT_EQ(handler_.alive, 0);
}

TEST_F(Http, NamesAnAddressThatIsTaken) {
  start();
  const auto second = HttpServer::start({.port = port()}, handler_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().what.find(std::to_string(port())), std::string::npos);
}

}  // namespace
}  // namespace sluice
