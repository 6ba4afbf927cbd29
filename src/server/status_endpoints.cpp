#include "server/status_endpoints.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "server/api_error.h"
#include "server/replies.h"
#include "server/submission.h"

namespace sluice {
namespace {

Json model_json(const ApiContext& context) {
  return {{"id", context.model},
          {"object", "model"},
          {"created", context.created_s},
          {"owned_by", "sluice"},
          {"max_model_len", context.loaded.plan().context_positions}};
}

HttpResponse ok(const Json& json) { return {.body = dump_json(json) + "\n"}; }

// Lines of Prometheus' text format.
class MetricText {
 public:
  void describe(const char* name, const char* type, const char* help) {
    text_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void value(const std::string& name, double value, const std::string& labels = {}) {
    text_ += name + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  void single(const char* name, const char* type, const char* help, double value) {
    describe(name, type, help);
    this->value(name, value);
  }
  void histogram(const char* name, const char* help, const Histogram& histogram) {
    describe(name, "histogram", help);
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.buckets.size(); ++i) {
      below += histogram.buckets[i];
      const std::string bound =
          i < histogram.bounds.size() ? number(histogram.bounds[i]) : std::string("+Inf");
      value(std::string(name) + "_bucket", static_cast<double>(below), "le=\"" + bound + "\"");
    }
    value(std::string(name) + "_sum", histogram.sum);
    value(std::string(name) + "_count", static_cast<double>(histogram.count));
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string number(double value) {
    std::array<char, 32> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    static_cast<void>(error);  // any double fits
    return std::string(buffer.data(), end);
  }
  std::string text_;
};

void append_requests(const ServingStats& stats, MetricText& out) {
  out.describe("sluice_requests_total", "counter", "Requests by how they ended.");
  for (const FinishReason finish :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kToolCalls,
        FinishReason::kCancelled, FinishReason::kError}) {
    const auto found = stats.finished.find(finish);
    out.value("sluice_requests_total",
              found == stats.finished.end() ? 0.0 : static_cast<double>(found->second),
              std::string("finish=\"") + finish_reason_name(finish) + "\"");
  }
  out.single("sluice_requests_refused_total", "counter", "Requests refused by a full queue.",
             static_cast<double>(stats.refused));
  out.single("sluice_requests_preempted_total", "counter",
             "Requests put back into the queue because the pool of positions was full.",
             static_cast<double>(stats.preempted));
  out.single("sluice_requests_running", "gauge", "Requests in the passes.",
             static_cast<double>(stats.running));
  out.single("sluice_requests_queued", "gauge", "Requests that wait for a place.",
             static_cast<double>(stats.queued));
}

void append_work(const ServingStats& stats, MetricText& out) {
  out.single("sluice_prompt_tokens_total", "counter", "Prompt rows computed.",
             static_cast<double>(stats.prompt_tokens));
  out.single("sluice_generated_tokens_total", "counter", "Tokens drawn.",
             static_cast<double>(stats.new_tokens));
  out.single("sluice_pass_rows_total", "counter", "Rows of all passes.",
             static_cast<double>(stats.pass_rows));
  out.histogram("sluice_pass_seconds", "Time of a pass.", stats.pass_s);
  out.histogram("sluice_first_token_seconds", "From a request's arrival to its first token.",
                stats.ttft_s);
  out.histogram("sluice_token_seconds", "From one token of a reply to the next.", stats.token_s);
  out.describe("sluice_bytes_read_total", "counter",
               "Bytes asked of the drive, by what they hold.");
  out.value("sluice_bytes_read_total", static_cast<double>(stats.expert_bytes_read),
            "tier=\"experts\"");
  out.value("sluice_bytes_read_total",
            static_cast<double>(stats.bytes_read - stats.expert_bytes_read), "tier=\"spine\"");
  out.describe("sluice_expert_lookups_total", "counter", "Experts wanted, by where they were.");
  out.value("sluice_expert_lookups_total", static_cast<double>(stats.expert_hits),
            "found=\"memory\"");
  out.value("sluice_expert_lookups_total", static_cast<double>(stats.expert_misses),
            "found=\"drive\"");
}

}  // namespace

HttpResponse list_models(const ApiContext& context) {
  return ok({{"object", "list"}, {"data", Json::array({model_json(context)})}});
}

HttpResponse show_model(const ApiContext& context, const std::string& name) {
  if (const auto wrong = check_model(context, name)) return error_response(*wrong);
  return ok(model_json(context));
}

HttpResponse list_requests(const ApiContext& context) {
  Json data = Json::array();
  for (const RequestStatus& status : context.scheduler.requests()) {
    Json entry = {{"id", status.id}, {"index", status.index}, {"object", "request"}};
    entry.update(progress_json(status));
    entry["max_tokens"] = status.max_new;
    data.push_back(std::move(entry));
  }
  return ok({{"object", "list"}, {"data", std::move(data)}});
}

HttpResponse delete_request(const ApiContext& context, const std::string& id) {
  const int64_t n_cancelled = context.scheduler.cancel(id);
  if (n_cancelled == 0) {
    return error_response({.status = 404,
                           .message = "no request with the id \"" + id + "\" runs or waits",
                           .code = "request_not_found"});
  }
  return ok({{"id", id}, {"object", "request"}, {"cancelled", n_cancelled}});
}

HttpResponse metrics(const ApiContext& context, int64_t n_connections) {
  const ServingStats stats = context.scheduler.stats();
  MetricText out;
  append_requests(stats, out);
  append_work(stats, out);
  out.single("sluice_connections", "gauge", "Open HTTP connections.",
             static_cast<double>(n_connections));
  out.describe("sluice_memory_bytes", "gauge", "Memory planned, by what takes it.");
  for (const Claim& claim : context.loaded.plan().memory.claims) {
    out.value("sluice_memory_bytes", static_cast<double>(claim.bytes),
              "claim=\"" + claim.name + "\"");
  }
  return {.body = out.take(), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace sluice
