#include "server/completion_format.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

Json empty_lists() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

void append_lists(Json& to, const Json& from) {
  if (to.is_null()) to = empty_lists();
  for (const auto& [key, list] : from.items()) {
    for (const Json& value : list) to[key].push_back(value);
  }
}

int64_t count_characters(std::string_view utf8) {
  return std::ranges::count_if(utf8,
                               [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

}  // namespace

CompletionFormat::CompletionFormat(ReplyNames names, std::vector<std::vector<TokenId>> prompts,
                                   Options options, const Tokenizer& tokenizer)
    : names_(std::move(names)), options_(options), tokenizer_(tokenizer) {
  for (std::vector<TokenId>& prompt : prompts) {
    Choice& choice = choices_.emplace_back();
    choice.prompt = std::move(prompt);
    if (!options_.echo) {
      choice.offset = count_characters(tokenizer_.decode(choice.prompt));
    } else if (options_.logprobs) {
      // The first token has no chance: nothing was before it.
      choice.logprobs = empty_lists();
      append_token(choice, {.token = {choice.prompt.front(), 0.0}, .top = {}}, /*first=*/true,
                   choice.logprobs);
    }
  }
}

Json CompletionFormat::head() const {
  return {{"id", names_.id},
          {"object", "text_completion"},
          {"created", names_.created_s},
          {"model", names_.model},
          {"system_fingerprint", names_.system_fingerprint}};
}

void CompletionFormat::append_chunk(size_t choice, std::string text, Json logprobs, Json finish,
                                    std::string& out) const {
  Json chunk = head();
  chunk["choices"] = Json::array({{{"index", choice},
                                   {"text", std::move(text)},
                                   {"logprobs", std::move(logprobs)},
                                   {"finish_reason", std::move(finish)}}});
  if (options_.include_usage) chunk["usage"] = nullptr;
  append_event(chunk, out);
}

void CompletionFormat::append_token(Choice& choice, const TokenLogprobs& entry, bool first,
                                    Json& lists) const {
  const std::string text = tokenizer_.decode({&entry.token.id, 1});
  lists["tokens"].push_back(text);
  lists["token_logprobs"].push_back(first ? Json() : Json(entry.token.logprob));
  Json top;
  for (const TokenChance& chance : entry.top) {
    if (top.is_null()) top = Json::object();
    top[tokenizer_.decode({&chance.id, 1})] = chance.logprob;
  }
  lists["top_logprobs"].push_back(std::move(top));
  lists["text_offset"].push_back(choice.offset);
  choice.offset += count_characters(text);
}

Json CompletionFormat::lists(Choice& choice, const std::vector<TokenLogprobs>& entries) const {
  Json lists = empty_lists();
  for (const TokenLogprobs& entry : entries) append_token(choice, entry, /*first=*/false, lists);
  return lists;
}

// The prompt's entries before the reply's.
Json CompletionFormat::echoed_lists(Choice& choice, const ReplyEvents& events) const {
  if (!options_.logprobs) return nullptr;
  Json all;
  if (!events.prompt_logprobs.empty()) append_lists(all, lists(choice, events.prompt_logprobs));
  if (!events.logprobs.empty()) append_lists(all, lists(choice, events.logprobs));
  return all;
}

void CompletionFormat::begin_stream(std::string& out) {
  if (!options_.echo) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    append_chunk(i, tokenizer_.decode(choices_[i].prompt), std::move(choices_[i].logprobs), nullptr,
                 out);
  }
}

void CompletionFormat::add_to_stream(size_t choice, const ReplyEvents& events, std::string& out) {
  Json logprobs = echoed_lists(choices_[choice], events);
  if (!events.delta.text.empty() || !logprobs.is_null()) {
    append_chunk(choice, events.delta.text, std::move(logprobs), nullptr, out);
  }
  if (events.end) append_chunk(choice, "", nullptr, finish_reason_name(events.end->finish), out);
}

void CompletionFormat::add_progress(size_t choice, const Json& progress, std::string& out) {
  Json chunk = head();
  chunk["choices"] = Json::array();
  if (options_.include_usage) chunk["usage"] = nullptr;
  chunk["progress"] = progress;
  chunk["progress"]["index"] = choice;
  append_event(chunk, out);
}

void CompletionFormat::end_stream(const ReplyUsage& usage, std::string& out) {
  if (options_.include_usage) {
    Json chunk = head();
    chunk["choices"] = Json::array();
    chunk["usage"] = usage_json(usage);
    append_event(chunk, out);
  }
  out += "data: [DONE]\n\n";
}

void CompletionFormat::add(size_t choice, ReplyEvents events) {
  Choice& to = choices_[choice];
  to.text += events.delta.text;
  const Json logprobs = echoed_lists(to, events);
  if (!logprobs.is_null()) append_lists(to.logprobs, logprobs);
  if (events.end) to.finish = events.end->finish;
}

Json CompletionFormat::whole(const ReplyUsage& usage) {
  Json reply = head();
  reply["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (options_.logprobs && choice.logprobs.is_null()) choice.logprobs = empty_lists();
    const std::string echo = options_.echo ? tokenizer_.decode(choice.prompt) : std::string();
    reply["choices"].push_back({{"index", i},
                                {"text", echo + choice.text},
                                {"logprobs", std::move(choice.logprobs)},
                                {"finish_reason", finish_reason_name(choice.finish)}});
  }
  reply["usage"] = usage_json(usage);
  return reply;
}

}  // namespace sluice
