#include "engine/engine.h"

#include <utility>

#include "engine/emulation.h"
#include "engine/session.h"
#include "format/checkpoint.h"
#include "format/fingerprint.h"
#include "format/pack_layout.h"
#include "io/file.h"
#include "model/pages.h"

namespace sluice {
namespace {

constexpr uint64_t kTokenizerFileBytesMax = 64 << 20;  // K3's tiktoken.model has 2.8 MB

Result<Tokenizer> open_tokenizer(const Checkpoint& checkpoint) {
  const auto& directory = checkpoint.directory();
  TRY(const std::string ranks,
      read_text_file(directory / "tiktoken.model", kTokenizerFileBytesMax));
  TRY(const std::string config,
      read_text_file(directory / "tokenizer_config.json", kTokenizerFileBytesMax));
  TRY(Tokenizer tokenizer, Tokenizer::parse(ranks, config));
  if (tokenizer.vocab_size() != checkpoint.config().vocab_size) {
    return Error{Code::kInvalid, directory.string() + ": tiktoken.model makes " +
                                     std::to_string(tokenizer.vocab_size()) +
                                     " tokens, but config.json says vocab_size " +
                                     std::to_string(checkpoint.config().vocab_size) +
                                     "; take both files from one release"};
  }
  return tokenizer;
}

}  // namespace

struct Engine::Impl {
  // The model and the session borrow from the members above them.
  std::shared_ptr<const GeneratedModel> emulated;
  std::unique_ptr<Checkpoint> checkpoint;
  EnginePlan plan;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<PagePool> pages;
  std::unique_ptr<Session> session;
  float qkv_norm_eps = kQkvNormEps;

  Result<StateKey> key() const {
    TRY(std::string digits, fingerprint(*checkpoint));
    return StateKey{.fingerprint = std::move(digits),
                    .spine = std::string(plan.pack ? kPackPolicy : "bf16"),
                    .family = plan.table->family,
                    .qkv_norm_eps = qkv_norm_eps};
  }
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& given) {
  auto impl = std::make_unique<Impl>();
  EngineOptions options = given;
  TRY(impl->emulated, emulate_drives(options));
  TRY(Checkpoint checkpoint, Checkpoint::open(options.model, options.direct,
                                              {.leading_layers = {}, .open_file = options.open_file}));
  impl->checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  TRY(impl->plan, plan_engine(*impl->checkpoint, options));
  TRY(Tokenizer tokenizer, open_tokenizer(*impl->checkpoint));
  impl->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  TRY(impl->model, Model::open(*impl->checkpoint, impl->plan.memory,
                               {.table = impl->plan.table,
                                .threads = impl->plan.threads,
                                .qkv_norm_eps = options.qkv_norm_eps,
                                .pack = impl->plan.pack.get()}));
  const Config& config = impl->checkpoint->config();
  impl->pages = std::make_unique<PagePool>(PageShape(config), impl->plan.context_positions);
  impl->session = std::make_unique<Session>(config, *impl->pages, kTentativeRowsMax);
  impl->qkv_norm_eps = options.qkv_norm_eps;
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

GenerateReply Engine::generate(const GenerateRequest& request, const std::atomic<bool>* cancel,
                               const OnText& on_text) {
  GenerateReply reply;
  const Status valid = validate(request.tokens, config(), plan().context_positions);
  if (!valid.ok()) {
    reply.finish = FinishReason::kError;
    reply.error = valid.error();
    return reply;
  }
  TokenRequest tokens = request.tokens;
  tokens.stop_ids.push_back(config().eos_token_id);

  ReplyText text(*impl_->tokenizer, request.form, request.stop_strings);
  const auto pass_on = [&](const TextDelta& delta) {
    reply.text += delta.text;
    reply.reasoning += delta.reasoning;
    if (on_text && !delta.empty()) on_text(delta);
  };
  TokenReply made = generate_tokens(*impl_->model, *impl_->session, plan().context_positions,
                                    tokens, cancel, [&](TokenId token) {
                                      pass_on(text.push(token));
                                      return !text.stopped();
                                    });
  pass_on(text.finish());
  reply.ids = std::move(made.ids);
  reply.finish = made.finish;
  reply.error = std::move(made.error);
  reply.stats = made.stats;
  reply.tool_calls = text.tool_calls();
  if (reply.finish == FinishReason::kStop && !reply.tool_calls.empty()) {
    reply.finish = FinishReason::kToolCalls;
  }
  return reply;
}

int64_t Engine::known_tokens(std::span<const TokenId> prompt) const {
  return impl_->session->known(prompt);
}

Result<SavedState> Engine::save_state(const std::filesystem::path& directory,
                                      std::span<const TokenId> prompt) {
  TRY(const StateKey key, impl_->key());
  impl_->session->resume(prompt);
  return impl_->session->save(directory, key);
}

Result<int64_t> Engine::load_state(const std::filesystem::path& file) {
  TRY(const StateKey key, impl_->key());
  return impl_->session->load(file, key);
}

Result<Capture> Engine::capture(std::span<const TokenId> prompt, const std::atomic<bool>* cancel) {
  Batch batch;
  const auto n_rows = static_cast<int64_t>(prompt.size());
  TokenRequest request;
  request.prompt.assign(prompt.begin(), prompt.end());
  TRY_OK(validate(request, config(), plan().context_positions));
  if (n_rows > impl_->model->rows_max()) {
    return Error{Code::kBudget, "the tensors of a prompt are taken in one pass, and one holds " +
                                    std::to_string(impl_->model->rows_max()) + " of the " +
                                    std::to_string(n_rows) + " tokens; raise --ram"};
  }
  Session& session = *impl_->session;
  session.reset();
  batch.sequences.push_back({.state = &session.state(),
                             .tokens = request.prompt,
                             .fate = RowFate::kKeep,
                             .n_logits = n_rows});
  std::vector<float> logits(static_cast<size_t>(n_rows * config().vocab_size));
  Capture capture;
  TRY_OK(
      impl_->model->forward(batch, {logits.data(), n_rows, config().vocab_size}, cancel, &capture));
  session.append(request.prompt);
  impl_->model->capture_state(session.state(), capture);
  return capture;
}

const Config& Engine::config() const { return impl_->checkpoint->config(); }
const Tokenizer& Engine::tokenizer() const { return *impl_->tokenizer; }
const EnginePlan& Engine::plan() const { return impl_->plan; }
bool Engine::direct() const { return impl_->model->direct(); }
const GeneratedModel* Engine::emulated() const { return impl_->emulated.get(); }

}  // namespace sluice
