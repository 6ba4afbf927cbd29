#include "engine/loaded_model.h"

#include <utility>

#include "engine/emulation.h"

#include "engine/emulation.h"

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

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const EngineOptions& given) {
  std::unique_ptr<LoadedModel> loaded(new LoadedModel);
  EngineOptions options = given;
  TRY(loaded->emulated_, emulate_drives(options));
  TRY(Checkpoint checkpoint,
      Checkpoint::open(options.model, options.direct,
                       {.leading_layers = {}, .open_file = options.open_file}));
  loaded->checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
  TRY(loaded->plan_, plan_engine(*loaded->checkpoint_, options));
  TRY(Tokenizer tokenizer, open_tokenizer(*loaded->checkpoint_));
  loaded->tokenizer_ = std::make_unique<Tokenizer>(std::move(tokenizer));
  TRY(loaded->model_, Model::open(*loaded->checkpoint_, loaded->plan_.memory,
                                  {.table = loaded->plan_.table,
                                   .threads = loaded->plan_.threads,
                                   .qkv_norm_eps = options.qkv_norm_eps,
                                   .pack = loaded->plan_.pack.get()}));
  loaded->pages_ =
      std::make_unique<PagePool>(PageShape(loaded->config()), loaded->plan_.pool_positions);
  return loaded;
}

std::unique_ptr<State> LoadedModel::new_state() {
  return std::make_unique<State>(config(), *pages_, kTentativeRowsMax);
}

}  // namespace sluice
