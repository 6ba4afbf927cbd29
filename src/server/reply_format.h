// How an endpoint puts a request's events into its JSON: as chunks of a stream, or as one object.
// One owner.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "engine/request_stream.h"

namespace sluice {

class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;

  // A stream: what comes before anything is made, what is made, how far it is, and the end.
  virtual void begin_stream(std::string& out) = 0;
  virtual void add_to_stream(size_t choice, const ReplyEvents& events, std::string& out) = 0;
  virtual void add_progress(size_t choice, const Json& progress, std::string& out) = 0;
  virtual void end_stream(const ReplyUsage& usage, std::string& out) = 0;

  // One object: what is made, and the whole.
  virtual void add(size_t choice, ReplyEvents events) = 0;
  virtual Json whole(const ReplyUsage& usage) = 0;
};

// usage of a reply in OpenAI's shape.
Json usage_json(const ReplyUsage& usage);

// One server-sent event, appended.
void append_event(const Json& data, std::string& out);

}  // namespace sluice
