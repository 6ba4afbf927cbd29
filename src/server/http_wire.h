// The bytes of HTTP replies. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http.h"

namespace sluice {

// How a connection goes on after a reply, and what its client understands.
struct WireForm {
  bool keep_open = true;
  bool http_1_0 = false;  // no chunks, and a connection stays open only if it is said
};

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kProcessing = "HTTP/1.1 102 Processing\r\n\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

// "OK", "Not Found"; "Error" for a status that is not ours.
std::string_view reason_phrase(int status);

// A whole response.
std::string response_text(const HttpResponse& response, WireForm form);

// The header of an event stream, in chunks unless http_1_0.
std::string event_stream_head(const HttpHeaders& headers, WireForm form);

// `text`, not empty, as one chunk.
std::string chunk_text(std::string_view text);

}  // namespace sluice
