// What the server says of itself and its work: /v1/models, /v1/requests, /metrics. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "server/api_context.h"
#include "server/http.h"

namespace sluice {

// GET /v1/models, or with a name GET /v1/models/{name}.
HttpResponse list_models(const ApiContext& context);
HttpResponse show_model(const ApiContext& context, const std::string& name);

// GET /v1/requests: what runs and waits, in order. DELETE /v1/requests/{id} ends one.
HttpResponse list_requests(const ApiContext& context);
HttpResponse delete_request(const ApiContext& context, const std::string& id);

// GET /metrics, in Prometheus' text format.
HttpResponse metrics(const ApiContext& context, int64_t n_connections);

}  // namespace sluice
