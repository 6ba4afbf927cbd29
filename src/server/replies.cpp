#include "server/replies.h"

#include <utility>

namespace sluice {
namespace {

HttpHeaders id_header(const RequestGroup& group) { return {{"x-request-id", group.id()}}; }

class StreamedReply final : public HttpStream {
 public:
  StreamedReply(const ApiContext& context, std::unique_ptr<RequestGroup> group,
                std::unique_ptr<ReplyFormat> format, bool progress)
      : context_(context),
        group_(std::move(group)),
        format_(std::move(format)),
        progress_(progress) {}

  void on_ready(std::function<void()> wake) override { group_->on_ready(wake); }
  HttpHeaders headers() const override { return id_header(*group_); }

  bool take(std::string& out) override {
    if (!begun_) format_->begin_stream(out);
    begun_ = true;
    bool news = false;
    for (size_t i = 0; i < group_->size(); ++i) {
      if (group_->ended(i)) continue;
      const ReplyEvents events = group_->take(i);
      news |= events.progress.has_value();
      if (events.end && events.end->error) {
        append_event(error_json(api_error(*events.end->error, Json())), out);
        return false;
      }
      format_->add_to_stream(i, events, out);
    }
    if (group_->all_ended()) {
      format_->end_stream(group_->usage(), out);
      return false;
    }
    if (news && progress_) append_progress(out);
    return true;
  }

  void keep_alive(std::string& out) override {
    out += ": keep-alive\n\n";
    if (progress_) append_progress(out);
  }

 private:
  void append_progress(std::string& out) {
    for (const RequestStatus& status : context_.scheduler.requests()) {
      if (status.id != group_->id()) continue;
      format_->add_progress(status.index, progress_json(status), out);
    }
  }

  const ApiContext& context_;
  std::unique_ptr<RequestGroup> group_;
  std::unique_ptr<ReplyFormat> format_;
  bool progress_;
  bool begun_ = false;
};

class WholeReply final : public HttpLater {
 public:
  WholeReply(std::unique_ptr<RequestGroup> group, std::unique_ptr<ReplyFormat> format)
      : group_(std::move(group)), format_(std::move(format)) {}

  void on_ready(std::function<void()> wake) override { group_->on_ready(wake); }

  std::optional<HttpResponse> whole() override {
    for (size_t i = 0; i < group_->size(); ++i) {
      if (!group_->ended(i)) format_->add(i, group_->take(i));
    }
    if (const Error* error = group_->error()) {
      HttpResponse response = error_response(api_error(*error, Json()));
      append_id(response);
      return response;
    }
    if (!group_->all_ended()) return std::nullopt;
    HttpResponse response{.body = dump_json(format_->whole(group_->usage())) + "\n"};
    append_id(response);
    return response;
  }

 private:
  void append_id(HttpResponse& response) const {
    for (auto& header : id_header(*group_)) response.headers.push_back(std::move(header));
  }

  std::unique_ptr<RequestGroup> group_;
  std::unique_ptr<ReplyFormat> format_;
};

}  // namespace

HttpReply make_reply(const ApiContext& context, std::unique_ptr<RequestGroup> group,
                     std::unique_ptr<ReplyFormat> format, ReplyStyle style) {
  if (style.stream) {
    return std::make_unique<StreamedReply>(context, std::move(group), std::move(format),
                                           style.progress);
  }
  return std::make_unique<WholeReply>(std::move(group), std::move(format));
}

Json progress_json(const RequestStatus& status) {
  const auto eta = [](double seconds) { return seconds < 0.0 ? Json() : Json(seconds); };
  return {{"state", request_phase_name(status.progress.phase)},
          {"queue_position", status.progress.queue_position},
          {"prompt_tokens", status.progress.prompt_tokens},
          {"prompt_tokens_done", status.progress.prompt_done},
          {"completion_tokens", status.progress.new_tokens},
          {"age_s", status.age_s},
          {"first_token_eta_s", eta(status.first_token_eta_s)},
          {"end_eta_s", eta(status.end_eta_s)}};
}

Json usage_json(const ReplyUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.new_tokens},
          {"total_tokens", usage.prompt_tokens + usage.new_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

void append_event(const Json& data, std::string& out) {
  out += "data: " + dump_json(data) + "\n\n";
}

}  // namespace sluice
