// Plain completions in OpenAI's shape. One owner.
#pragma once

#include <string>
#include <vector>

#include "server/chat_format.h"
#include "server/reply_format.h"
#include "text/tokenizer.h"

namespace sluice {

class CompletionFormat final : public ReplyFormat {
 public:
  struct Options {
    bool logprobs = false;
    bool echo = false;
    bool include_usage = false;  // in a stream
  };
  // `prompts` [choices]: what each choice goes on from. `tokenizer` outlives this object.
  CompletionFormat(ReplyNames names, std::vector<std::vector<TokenId>> prompts, Options options,
                   const Tokenizer& tokenizer);

  void begin_stream(std::string& out) override;
  void add_to_stream(size_t choice, const ReplyEvents& events, std::string& out) override;
  void add_progress(size_t choice, const Json& progress, std::string& out) override;
  void end_stream(const ReplyUsage& usage, std::string& out) override;
  void add(size_t choice, ReplyEvents events) override;
  Json whole(const ReplyUsage& usage) override;

 private:
  // Log probabilities are parallel lists here, and offsets count characters of the whole text.
  struct Choice {
    std::vector<TokenId> prompt;
    std::string text;
    Json logprobs;  // null, or the four lists
    int64_t offset = 0;
    FinishReason finish = FinishReason::kLength;
  };

  Json head() const;
  void append_chunk(size_t choice, std::string text, Json logprobs, Json finish,
                    std::string& out) const;
  // The lists for tokens that come at the choice's offset, which moves on.
  Json lists(Choice& choice, const std::vector<TokenLogprobs>& entries) const;
  void append_token(Choice& choice, const TokenLogprobs& entry, bool first, Json& lists) const;
  Json echoed_lists(Choice& choice, const ReplyEvents& events) const;

  ReplyNames names_;
  Options options_;
  const Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
};

}  // namespace sluice
