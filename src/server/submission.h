// From what a body asked for to scheduled requests: model name, limits, one request for each
// choice. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api_context.h"
#include "server/api_error.h"
#include "server/chat_format.h"
#include "server/generation_fields.h"
#include "server/request_group.h"

namespace sluice {

// Schedules `fields.n` choices of each of `prompts`, whose token limit and choice are set here.
// Null with `refusal` set when that cannot be.
std::unique_ptr<RequestGroup> submit_choices(const ApiContext& context,
                                             const std::string& id_prefix,
                                             const GenerationFields& fields,
                                             std::vector<ServeRequest> prompts, ApiError& refusal);

ReplyNames reply_names(const ApiContext& context, const std::string& id);

// Whether a body may name this model: it has no name, or ours. Else the error to answer with.
std::optional<ApiError> check_model(const ApiContext& context, const std::string& model);

}  // namespace sluice
