#include "model/model.h"

#include <algorithm>
#include <string>

#include "model/forward.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace sluice {

struct Model::Impl {
  Impl(const Checkpoint& from, Weights loaded, std::unique_ptr<SpineStore> spine_store,
       std::unique_ptr<ExpertStore> expert_store, int64_t rows_max, const ModelOptions& options)
      : checkpoint(from),
        weights(std::move(loaded)),
        spine(std::move(spine_store)),
        experts(std::move(expert_store)),
        pool(options.threads),
        workspace(from.config(), rows_max, options.threads),
        compute{.k = options.table, .pool = &pool, .pack = workspace.pack()},
        pass{.config = from.config(),
             .compute = compute,
             .workspace = workspace,
             .qkv_norm_eps = options.qkv_norm_eps} {}

  const Checkpoint& checkpoint;
  Weights weights;
  std::unique_ptr<SpineStore> spine;
  std::unique_ptr<ExpertStore> experts;
  ThreadPool pool;
  Workspace workspace;
  Compute compute;
  Pass pass;  // reused by every forward()
  std::atomic<uint64_t> embedding_bytes_read{0};
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::open(const Checkpoint& checkpoint, const MemoryPlan& plan,
                                           const ModelOptions& options) {
  TRY(Weights weights, load_weights(checkpoint, options.pack));
  TRY(auto spine, SpineStore::open(checkpoint, plan, options.pack));
  TRY(auto experts, ExpertStore::open(checkpoint, plan.expert_slots));
  return std::unique_ptr<Model>(
      new Model(std::make_unique<Impl>(checkpoint, std::move(weights), std::move(spine),
                                       std::move(experts), plan.rows_max, options)));
}

namespace {

// kInvalid or kBudget for a batch that no pass may see.
Status check_batch(const Batch& batch, const Config& config, int64_t rows_max) {
  CHECK(!batch.sequences.empty());
  if (batch.n_rows() > rows_max) {
    return Error{Code::kBudget, "a pass of " + std::to_string(batch.n_rows()) +
                                    " rows exceeds the plan's " + std::to_string(rows_max) +
                                    "; raise --ram or cut the prompt"};
  }
  for (const SequenceRows& rows : batch.sequences) {
    const auto n = static_cast<int64_t>(rows.tokens.size());
    CHECK(rows.state != nullptr && n > 0 && rows.n_logits >= 0 && rows.n_logits <= n);
    CHECK(rows.state->n_tentative() == 0);
    CHECK(rows.fate == RowFate::kKeep || n <= rows.state->log_rows_max());
    for (const TokenId token : rows.tokens) {
      if (token >= 0 && token < config.vocab_size) continue;
      return Error{Code::kInvalid, "token id " + std::to_string(token) +
                                       " is outside the vocabulary of " +
                                       std::to_string(config.vocab_size)};
    }
  }
  return Ok{};
}

}  // namespace

Status Model::forward(const Batch& batch, Rows logits, const std::atomic<bool>* stop,
                      Capture* capture) {
  const Config& config = impl_->checkpoint.config();
  TRY_OK(check_batch(batch, config, rows_max()));
  for (const SequenceRows& rows : batch.sequences) {
    TRY_OK(rows.state->reserve(static_cast<int64_t>(rows.tokens.size())));
  }
  cut_into_tiles(batch, capture, impl_->pass);
  const PassSources sources{.checkpoint = impl_->checkpoint,
                            .weights = impl_->weights,
                            .spine = *impl_->spine,
                            .experts = *impl_->experts,
                            .embedding_bytes_read = impl_->embedding_bytes_read};
  return run_pass(sources, batch, impl_->pass, logits, stop);
}

void Model::capture_state(State& state, Capture& capture) const {
  const Config& c = config();
  int64_t n_kda = 0;
  int64_t n_mla = 0;
  for (int32_t layer = 0; layer < c.n_layers; ++layer) {
    const std::string suffix = "." + std::to_string(layer);
    if (!c.is_kda(LayerId{layer})) {
      const int64_t width = c.mla.latent_dim();
      float* out = capture.floats("mla_cache" + suffix, {state.length(), width});
      for (int64_t p = 0; p < state.length(); ++p) {
        std::copy_n(state.latent(n_mla, p), width, out + p * width);
      }
      ++n_mla;
      continue;
    }
    const KdaShape& shape = state.kda_shape();
    const KdaMemory memory = state.committed(n_kda++);
    std::copy_n(
        memory.recurrent, shape.recurrent_floats(),
        capture.floats("kda_state" + suffix, {shape.n_heads, shape.head_dim, shape.head_dim}));
    constexpr std::array<const char*, 3> kParts = {".q", ".k", ".v"};
    for (size_t i = 0; i < kParts.size(); ++i) {
      std::copy_n(
          memory.windows[i], shape.window * shape.channels(),
          capture.floats("conv_state" + suffix + kParts[i], {shape.window, shape.channels()}));
    }
  }
}

const Config& Model::config() const { return impl_->checkpoint.config(); }
int64_t Model::rows_max() const { return impl_->workspace.rows_max(); }
const Compute& Model::compute() const { return impl_->compute; }
uint64_t Model::bytes_read() const {
  return impl_->weights.bytes_read + impl_->spine->bytes_read() +
         impl_->experts->stats().bytes_read + impl_->embedding_bytes_read;
}
ExpertStore::Stats Model::expert_stats() const { return impl_->experts->stats(); }
bool Model::direct() const { return impl_->spine->direct(); }

}  // namespace sluice
