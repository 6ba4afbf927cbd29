#include "server/api_error.h"

namespace sluice {
namespace {

// "messages[0].content must be ..." names messages[0].content, if the body has messages.
std::string param_of(std::string_view what, const Json& body) {
  const std::string_view path = what.substr(0, what.find(' '));
  const std::string_view field = path.substr(0, path.find_first_of("[."));
  return body.is_object() && body.contains(std::string(field)) ? std::string(path) : std::string();
}

}  // namespace

Json error_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = dump_json(error_json(error)) + "\n"};
  if (error.retry_after_s > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

ApiError api_error(const Error& error, const Json& body) {
  ApiError out{.status = 400, .message = error.what};
  switch (error.code) {
    case Code::kInvalid:
      out.param = param_of(error.what, body);
      break;
    case Code::kUnsupported:
      out.param = param_of(error.what, body);
      out.code = "unsupported";
      break;
    case Code::kBudget:
      out.code = "context_length_exceeded";
      break;
    case Code::kIo:
    case Code::kCorrupt:
      out.status = 500;
      out.type = "server_error";
      out.code = error.code == Code::kIo ? "read_error" : "damaged_file";
      break;
    case Code::kCancelled:
      out.status = 503;
      out.type = "server_error";
      out.code = "cancelled";
      break;
  }
  return out;
}

}  // namespace sluice
