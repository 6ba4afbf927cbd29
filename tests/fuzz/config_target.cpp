// config.json and generation_config.json: whatever is accepted keeps the bounds on which every
// later product of dimensions relies.
#include <algorithm>
#include <cmath>

#include "format/config.h"
#include "format/tensor_names.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/sections.h"

namespace sluice {
namespace {

bool is_token(TokenId id, const Config& config) { return id >= 0 && id < config.vocab_size; }

void check_tokens(const Config& config) {
  for (const TokenId id : config.stop_token_ids) CHECK(is_token(id, config));
  for (const TokenId id : {config.eos_token_id, config.bos_token_id, config.pad_token_id,
                           config.media_placeholder_token_id}) {
    CHECK(id == -1 || is_token(id, config));
  }
}

void check_shapes(const std::vector<TensorSpec>& specs) {
  for (const TensorSpec& spec : specs) {
    CHECK(!spec.name.empty());
    int64_t elements = 1;
    for (const int64_t dim : spec.shape) {
      CHECK(dim > 0);
      CHECK(!__builtin_mul_overflow(elements, dim, &elements));
    }
    CHECK(elements <= INT64_MAX / 8);
  }
}

void check_moe(const Config& config) {
  const MoeConfig& moe = config.moe;
  if (moe.n_experts == 0) return;
  CHECK(moe.n_experts_per_token > 0 && moe.n_experts_per_token <= moe.n_experts);
  CHECK(moe.n_groups > 0 && moe.n_experts % moe.n_groups == 0);
  CHECK(moe.topk_group > 0 && moe.topk_group <= moe.n_groups);
  CHECK(moe.n_experts_per_token <= moe.topk_group * (moe.n_experts / moe.n_groups));
  CHECK(std::isfinite(moe.routed_scaling_factor) && moe.routed_scaling_factor > 0);
  int64_t bytes = 0;
  CHECK(!__builtin_mul_overflow(config.n_layers * moe.n_experts * 12,
                                config.expert_width() * moe.intermediate_size, &bytes));
}

}  // namespace

void fuzz_config(std::string_view input) {
  const Result<Config> parsed = parse_config(input, "config.json");
  if (!parsed.ok()) {
    CHECK(parsed.error().what.starts_with("config.json: "));
    return;
  }
  const Config& config = parsed.value();
  CHECK(config.hidden_size > 0 && config.n_layers > 0 && config.vocab_size > 0);
  CHECK(config.max_positions > 0 && config.intermediate_size > 0);
  CHECK(std::isfinite(config.rms_norm_eps) && config.rms_norm_eps > 0);
  CHECK(std::ssize(config.layer_is_kda) == config.n_layers);
  CHECK(config.n_attn_res_blocks() >= 0 && config.n_attn_res_blocks() <= config.n_layers);
  check_tokens(config);
  check_moe(config);
  check_shapes(global_tensors(config));
  for (int32_t layer = 0; layer < std::min<int64_t>(config.n_layers, 8); ++layer) {
    check_shapes(layer_tensors(config, LayerId{layer}));
  }
}

void fuzz_generation_config(std::string_view input) {
  Config config;
  config.vocab_size = 4096;
  config.eos_token_id = 7;
  config.stop_token_ids = {7};
  const Status status = apply_generation_config(input, "generation_config.json", config);
  if (!status.ok()) {
    CHECK(config.eos_token_id == 7 && config.stop_token_ids == std::vector<TokenId>{7});
    return;
  }
  CHECK(!config.stop_token_ids.empty());
  CHECK(config.eos_token_id == config.stop_token_ids.front());
  check_tokens(config);
}

}  // namespace sluice
