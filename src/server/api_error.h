// Errors as OpenAI's API gives them: an HTTP status and {"error": {message, type, param, code}}.
// Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "server/http.h"

namespace sluice {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param = {};  // the field at fault, or empty
  std::string code = {};   // a word for programs, or empty
  // After how many seconds the client may try again; 0: no word about it.
  int64_t retry_after_s = 0;
};

Json error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);

// An error of the world that a request met. `body` is the request's: an error text that begins with
// one of its fields names it as `param`.
ApiError api_error(const Error& error, const Json& body);

}  // namespace sluice
