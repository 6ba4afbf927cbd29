#include "server/chat_format.h"

#include <utility>

namespace sluice {

ChatFormat::ChatFormat(ReplyNames names, size_t n_choices, Options options,
                       const Tokenizer& tokenizer)
    : names_(std::move(names)), options_(options), tokenizer_(tokenizer), choices_(n_choices) {}

Json ChatFormat::head(const char* object) const {
  return {{"id", names_.id},
          {"object", object},
          {"created", names_.created_s},
          {"model", names_.model},
          {"system_fingerprint", names_.system_fingerprint}};
}

void ChatFormat::append_chunk(size_t choice, Json delta, Json logprobs, Json finish,
                              std::string& out) const {
  Json chunk = head("chat.completion.chunk");
  chunk["choices"] = Json::array({{{"index", choice},
                                   {"delta", std::move(delta)},
                                   {"logprobs", std::move(logprobs)},
                                   {"finish_reason", std::move(finish)}}});
  if (options_.include_usage) chunk["usage"] = nullptr;
  append_event(chunk, out);
}

void ChatFormat::begin_stream(std::string& out) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    append_chunk(i, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr, out);
  }
}

void ChatFormat::add_to_stream(size_t choice, const ReplyEvents& events, std::string& out) {
  const TextDelta& delta = events.delta;
  if (!delta.reasoning.empty()) {
    append_chunk(choice, {{"reasoning_content", delta.reasoning}}, nullptr, nullptr, out);
  }
  if (!delta.text.empty() || !events.logprobs.empty()) {
    Json logprobs = options_.logprobs ? logprobs_json(events.logprobs) : Json();
    append_chunk(choice, {{"content", delta.text}}, std::move(logprobs), nullptr, out);
  }
  for (const CallDelta& call : delta.calls) {
    Json piece = {{"index", call.call}};
    if (call.begins) {
      piece["id"] = call_id(choice, call.call);
      piece["type"] = "function";
      piece["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    } else {
      piece["function"] = {{"arguments", call.arguments}};
    }
    append_chunk(choice, {{"tool_calls", Json::array({std::move(piece)})}}, nullptr, nullptr, out);
  }
  if (events.end) {
    append_chunk(choice, Json::object(), nullptr, finish_reason_name(events.end->finish), out);
  }
}

void ChatFormat::add_progress(size_t choice, const Json& progress, std::string& out) {
  Json chunk = head("chat.completion.chunk");
  chunk["choices"] = Json::array();
  if (options_.include_usage) chunk["usage"] = nullptr;
  chunk["progress"] = progress;
  chunk["progress"]["index"] = choice;
  append_event(chunk, out);
}

void ChatFormat::end_stream(const ReplyUsage& usage, std::string& out) {
  if (options_.include_usage) {
    Json chunk = head("chat.completion.chunk");
    chunk["choices"] = Json::array();
    chunk["usage"] = usage_json(usage);
    append_event(chunk, out);
  }
  out += "data: [DONE]\n\n";
}

void ChatFormat::add(size_t choice, ReplyEvents events) {
  Choice& to = choices_[choice];
  to.content += events.delta.text;
  to.reasoning += events.delta.reasoning;
  for (CallDelta& call : events.delta.calls) {
    if (call.begins) {
      to.calls.push_back(std::move(call));
    } else {
      to.calls[call.call].arguments += call.arguments;
    }
  }
  for (TokenLogprobs& entry : events.logprobs) to.logprobs.push_back(std::move(entry));
  if (events.end) to.finish = events.end->finish;
}

Json ChatFormat::whole(const ReplyUsage& usage) {
  Json reply = head("chat.completion");
  reply["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    reply["choices"].push_back(
        {{"index", i},
         {"message", message_json(i)},
         {"logprobs", options_.logprobs ? logprobs_json(choices_[i].logprobs) : Json()},
         {"finish_reason", finish_reason_name(choices_[i].finish)}});
  }
  reply["usage"] = usage_json(usage);
  return reply;
}

Json ChatFormat::message_json(size_t choice) const {
  const Choice& from = choices_[choice];
  const bool no_content = from.content.empty() && !from.calls.empty();
  Json message = {{"role", "assistant"},
                  {"content", no_content ? Json() : Json(from.content)},
                  {"refusal", nullptr}};
  if (!from.reasoning.empty()) message["reasoning_content"] = from.reasoning;
  for (size_t i = 0; i < from.calls.size(); ++i) {
    message["tool_calls"].push_back(
        {{"id", call_id(choice, i)},
         {"type", "function"},
         {"function", {{"name", from.calls[i].name}, {"arguments", from.calls[i].arguments}}}});
  }
  return message;
}

Json ChatFormat::logprobs_json(const std::vector<TokenLogprobs>& entries) const {
  Json content = Json::array();
  for (const TokenLogprobs& entry : entries) {
    Json token = token_json(entry.token, tokenizer_);
    token["top_logprobs"] = Json::array();
    for (const TokenChance& chance : entry.top) {
      token["top_logprobs"].push_back(token_json(chance, tokenizer_));
    }
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

std::string ChatFormat::call_id(size_t choice, size_t call) const {
  const size_t dash = names_.id.find('-');
  const std::string word = dash == std::string::npos ? names_.id : names_.id.substr(dash + 1);
  return "call_" + word.substr(0, 12) + "_" + std::to_string(choice) + "_" + std::to_string(call);
}

Json token_json(const TokenChance& chance, const Tokenizer& tokenizer) {
  Json bytes = Json::array();
  for (const char c : tokenizer.bytes(chance.id)) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", tokenizer.decode({&chance.id, 1})},
          {"logprob", chance.logprob},
          {"bytes", std::move(bytes)}};
}

}  // namespace sluice
