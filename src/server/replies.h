// A request group's reply on its way to the client: streamed, or whole at its end.
#pragma once

#include <memory>

#include "server/api_context.h"
#include "server/http.h"
#include "server/reply_format.h"
#include "server/request_group.h"

namespace sluice {

struct ReplyStyle {
  bool stream = false;
  bool progress = false;  // of a stream
};

HttpReply make_reply(const ApiContext& context, std::unique_ptr<RequestGroup> group,
                     std::unique_ptr<ReplyFormat> format, ReplyStyle style);

// How far one request is, for clients: queue position, tokens, seconds that are left.
Json progress_json(const RequestStatus& status);

}  // namespace sluice
