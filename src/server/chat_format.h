// Chat completions in OpenAI's shape, with the thinking as reasoning_content. One owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/reply_format.h"
#include "text/tokenizer.h"

namespace sluice {

// What every object of a reply repeats.
struct ReplyNames {
  std::string id;
  std::string model;
  std::string system_fingerprint;
  int64_t created_s = 0;
};

class ChatFormat final : public ReplyFormat {
 public:
  struct Options {
    bool logprobs = false;
    bool include_usage = false;  // in a stream
  };
  // `tokenizer` outlives this object.
  ChatFormat(ReplyNames names, size_t n_choices, Options options, const Tokenizer& tokenizer);

  void begin_stream(std::string& out) override;
  void add_to_stream(size_t choice, const ReplyEvents& events, std::string& out) override;
  void add_progress(size_t choice, const Json& progress, std::string& out) override;
  void end_stream(const ReplyUsage& usage, std::string& out) override;
  void add(size_t choice, ReplyEvents events) override;
  Json whole(const ReplyUsage& usage) override;

 private:
  struct Choice {
    std::string content, reasoning;
    std::vector<CallDelta> calls;  // whole ones
    std::vector<TokenLogprobs> logprobs;
    FinishReason finish = FinishReason::kLength;
  };

  Json head(const char* object) const;
  void append_chunk(size_t choice, Json delta, Json logprobs, Json finish, std::string& out) const;
  Json logprobs_json(const std::vector<TokenLogprobs>& entries) const;
  Json message_json(size_t choice) const;
  // The parser's ids count from 1 in every reply; a client's history holds several replies.
  std::string call_id(size_t choice, size_t call) const;

  ReplyNames names_;
  Options options_;
  const Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
};

// One token's entry: token, logprob, bytes.
Json token_json(const TokenChance& chance, const Tokenizer& tokenizer);

}  // namespace sluice
