// The scheduled requests behind one client's request: its choices, of one prompt or several. One
// owner. What has not ended when this is destroyed is cancelled.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request_stream.h"
#include "engine/scheduler.h"
#include "server/api_context.h"
#include "server/api_error.h"

namespace sluice {

// A random word that tells one request from others: 24 hex digits.
std::string random_id();

class RequestGroup {
 public:
  // Submits all of `requests`, `n` after one another having one prompt; or the error to answer
  // with. `context` outlives the group.
  static std::unique_ptr<RequestGroup> submit(const ApiContext& context, std::string id, int64_t n,
                                              std::vector<ServeRequest> requests,
                                              ApiError& refusal);
  ~RequestGroup();
  RequestGroup(const RequestGroup&) = delete;
  RequestGroup& operator=(const RequestGroup&) = delete;

  const std::string& id() const { return id_; }
  size_t size() const { return streams_.size(); }
  void on_ready(const std::function<void()>& wake);
  // What came of one of them, its end included; remembers the ends.
  ReplyEvents take(size_t index);
  RequestProgress progress(size_t index) const { return streams_[index]->progress(); }
  bool ended(size_t index) const { return ends_[index].has_value(); }
  bool all_ended() const { return n_ended_ == size(); }
  // The first error among the ends.
  const Error* error() const;
  // Of all that ended: a prompt counts once, whatever the number of its choices.
  ReplyUsage usage() const;

 private:
  RequestGroup(const ApiContext& context, std::string id, int64_t n,
               std::vector<std::shared_ptr<RequestStream>> streams);
  void log_end() const;

  const ApiContext& context_;
  std::string id_;
  size_t n_;
  std::vector<std::shared_ptr<RequestStream>> streams_;
  std::vector<std::optional<ReplyEnd>> ends_;
  size_t n_ended_ = 0;
};

}  // namespace sluice
