#include "server/http_wire.h"

#include <array>
#include <charconv>

namespace sluice {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 18> kReasons = {{
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Payload Too Large"},
    {415, "Unsupported Media Type"},
    {422, "Unprocessable Entity"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
}};

std::string status_line(int status) {
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason_phrase(status)) + "\r\n";
}

std::string header_lines(const HttpHeaders& headers) {
  std::string text;
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text;
}

std::string_view connection_line(WireForm form) {
  if (!form.keep_open) return "Connection: close\r\n";
  return form.http_1_0 ? "Connection: keep-alive\r\n" : "";
}

}  // namespace

std::string_view reason_phrase(int status) {
  for (const auto& [code, reason] : kReasons) {
    if (code == status) return reason;
  }
  return "Error";
}

std::string response_text(const HttpResponse& response, WireForm form) {
  std::string text = status_line(response.status);
  if (!response.content_type.empty()) text += "Content-Type: " + response.content_type + "\r\n";
  text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  text += header_lines(response.headers);
  text += connection_line(form);
  text += "\r\n";
  text += response.body;
  return text;
}

std::string event_stream_head(const HttpHeaders& headers, WireForm form) {
  std::string text = status_line(200);
  // The last one keeps nginx from collecting the stream before it passes it on.
  text += "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  text += header_lines(headers);
  if (!form.http_1_0) text += "Transfer-Encoding: chunked\r\n";
  text += connection_line(form);
  return text + "\r\n";
}

std::string chunk_text(std::string_view text) {
  std::array<char, 2 * sizeof(size_t)> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), text.size(), 16);
  static_cast<void>(error);  // the digits hold any size
  std::string out(digits.data(), end);
  out += "\r\n";
  out += text;
  return out += "\r\n";
}

}  // namespace sluice
