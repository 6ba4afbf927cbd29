#include "server/submission.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

namespace sluice {

std::unique_ptr<RequestGroup> submit_choices(const ApiContext& context,
                                             const std::string& id_prefix,
                                             const GenerationFields& fields,
                                             std::vector<ServeRequest> prompts, ApiError& refusal) {
  if (const auto wrong = check_model(context, fields.model)) {
    refusal = *wrong;
    return nullptr;
  }
  const int64_t n_choices = std::ssize(prompts) * fields.n;
  if (n_choices > kChoicesMax) {
    refusal = {.message = "n times the number of prompts is " + std::to_string(n_choices) +
                          "; at most " + std::to_string(kChoicesMax) + " choices are made at once",
               .param = "n"};
    return nullptr;
  }
  const int64_t vocab_size = context.loaded.config().vocab_size;
  for (const LogitBias& entry : fields.sampling.logit_bias) {
    if (entry.id >= 0 && entry.id < vocab_size) continue;
    refusal = {.message = "logit_bias names token " + std::to_string(entry.id) +
                          "; ids run from 0 to " + std::to_string(vocab_size - 1),
               .param = "logit_bias"};
    return nullptr;
  }
  std::vector<ServeRequest> requests;
  for (ServeRequest& prompt : prompts) {
    const int64_t room = context.loaded.plan().context_positions - std::ssize(prompt.tokens.prompt);
    const int64_t wanted = fields.max_tokens.value_or(std::numeric_limits<int64_t>::max());
    prompt.tokens.max_new = std::max<int64_t>(0, std::min(wanted, room));
    if (const Status valid = context.scheduler.validate(prompt); !valid.ok()) {
      refusal = api_error(valid.error(), Json());
      return nullptr;
    }
    for (int64_t i = 0; i < fields.n; ++i) {
      prompt.tokens.choice = static_cast<uint64_t>(i);
      prompt.index = requests.size();
      requests.push_back(prompt);
    }
  }
  return RequestGroup::submit(context, id_prefix + random_id(), fields.n, std::move(requests),
                              refusal);
}

ReplyNames reply_names(const ApiContext& context, const std::string& id) {
  return {.id = id,
          .model = context.model,
          .system_fingerprint = context.system_fingerprint,
          .created_s = static_cast<int64_t>(std::time(nullptr))};
}

std::optional<ApiError> check_model(const ApiContext& context, const std::string& model) {
  if (model.empty() || model == context.model) return std::nullopt;
  return ApiError{.status = 404,
                  .message = "the model \"" + model +
                             "\" is not served here; the one that is has "
                             "the name \"" +
                             context.model + "\"",
                  .param = "model",
                  .code = "model_not_found"};
}

}  // namespace sluice
