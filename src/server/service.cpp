#include "server/service.h"

#include <array>
#include <string_view>
#include <utility>

#include "server/api_error.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/status_endpoints.h"
#include "server/token_endpoints.h"

namespace sluice {
namespace {

constexpr std::string_view kModels = "/v1/models/";
constexpr std::string_view kRequests = "/v1/requests/";

struct Endpoint {
  std::string_view path;  // ends with "/": what follows names a thing
  std::string_view method;
};
constexpr std::array<Endpoint, 10> kEndpoints = {{
    {"/health", "GET"},
    {"/metrics", "GET"},
    {"/v1/models", "GET"},
    {kModels, "GET"},
    {"/v1/requests", "GET"},
    {kRequests, "DELETE"},
    {"/v1/chat/completions", "POST"},
    {"/v1/completions", "POST"},
    {"/tokenize", "POST"},
    {"/detokenize", "POST"},
}};

const Endpoint* find_endpoint(std::string_view path) {
  for (const Endpoint& endpoint : kEndpoints) {
    const bool prefix = endpoint.path.ends_with('/');
    if (prefix ? path.starts_with(endpoint.path) && path.size() > endpoint.path.size()
               : path == endpoint.path) {
      return &endpoint;
    }
  }
  return nullptr;
}

// A page of another origin can send any other type without asking first.
bool is_json(std::string_view content_type) {
  return content_type.substr(0, content_type.find(';')) == "application/json";
}

ApiError starting() {
  return {.status = 503,
          .message = "the model is still being opened; try again later",
          .type = "server_error",
          .code = "starting",
          .retry_after_s = 10};
}

std::optional<ApiError> check_endpoint(const HttpRequest& head) {
  const Endpoint* endpoint = find_endpoint(head.path);
  if (endpoint == nullptr) {
    return ApiError{.status = 404,
                    .message = "there is no " + head.method + " " + head.path + " here",
                    .code = "unknown_url"};
  }
  if (head.method != endpoint->method) {
    return ApiError{
        .status = 405,
        .message = head.path + " takes " + std::string(endpoint->method) + ", not " + head.method,
        .code = "method_not_allowed"};
  }
  if (head.method == "POST" && !is_json(head.header("content-type"))) {
    return ApiError{.status = 415,
                    .message = "the body must be JSON: send Content-Type: application/json",
                    .code = "unsupported_media_type"};
  }
  return std::nullopt;
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)), access_(options_.api_keys, options_.local_only) {}

void Service::set_ready(const ApiContext& context) { context_ = &context; }

std::optional<HttpResponse> Service::refuse(const HttpRequest& head) {
  if (head.method == "OPTIONS" && !options_.cors_origin.empty()) {
    HttpResponse preflight{.status = 204, .content_type = ""};
    preflight.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                         {"Access-Control-Allow-Headers", "*, Authorization"},
                         {"Access-Control-Max-Age", "600"}};
    return preflight;
  }
  if (const auto wrong = check_endpoint(head)) return error_response(*wrong);
  if (head.path == "/health") return health();
  if (const auto denied = access_.refuse(head)) return error_response(*denied);
  if (context_ == nullptr) return error_response(starting());
  return std::nullopt;
}

HttpReply Service::handle(HttpRequest request) {
  const ApiContext* context = context_;
  CHECK(context != nullptr);  // refuse() was asked before
  if (options_.log && options_.log_bodies && !request.body.empty()) {
    options_.log(request.path + " " + request.body);
  }
  return route(*context, request);
}

HttpReply Service::route(const ApiContext& context, const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/v1/chat/completions") return chat_completions(context, request.body);
  if (path == "/v1/completions") return completions(context, request.body);
  if (path == "/tokenize") return tokenize(context, request.body);
  if (path == "/detokenize") return detokenize(context, request.body);
  if (path == "/v1/models") return list_models(context);
  if (path.starts_with(kModels)) return show_model(context, path.substr(kModels.size()));
  if (path == "/v1/requests") return list_requests(context);
  if (path.starts_with(kRequests)) return delete_request(context, path.substr(kRequests.size()));
  CHECK(path == "/metrics");
  return metrics(context, options_.n_connections ? options_.n_connections() : 0);
}

HttpResponse Service::protocol_error(int status, std::string_view what) {
  ApiError error{.status = status, .message = std::string(what)};
  if (status >= 500) error.type = "server_error";
  return error_response(error);
}

HttpResponse Service::health() const {
  const char* state = draining_ ? "draining" : context_ == nullptr ? "starting" : "ready";
  const bool ready = !draining_ && context_ != nullptr;
  return {.status = ready ? 200 : 503, .body = dump_json({{"status", state}}) + "\n"};
}

HttpHeaders Service::common_headers() const {
  HttpHeaders headers;
  if (options_.cors_origin.empty()) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", options_.cors_origin);
  if (options_.cors_origin != "*") headers.emplace_back("Vary", "Origin");
  return headers;
}

}  // namespace sluice
