// A checkpoint opened to compute with: the files, the plan made for them, tokenizer, model and the
// pool of latent pages. What borrows from what is settled here. One owner; the tokenizer and the
// plan may be read from any thread.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "engine/options.h"
#include "engine/plan.h"
#include "format/checkpoint.h"
#include "model/model.h"
#include "model/pages.h"
#include "model/state.h"
#include "text/tokenizer.h"

namespace sluice {

class LoadedModel {
 public:
  // Reads the checkpoint, makes the plan (kBudget names the floor) and loads what it pins.
  // `open_file`, if given, takes the place of options.open_file.
  static Result<std::unique_ptr<LoadedModel>> open(const EngineOptions& options);
  static Result<std::unique_ptr<LoadedModel>> open(EngineOptions options,
                                                   const OpenFile& open_file);

  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const Config& config() const { return checkpoint_->config(); }
  const EnginePlan& plan() const { return plan_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Model& model() { return *model_; }
  PagePool& pages() { return *pages_; }
  // An empty sequence; it may not outlive this object.
  std::unique_ptr<State> new_state();

 private:
  LoadedModel() = default;

  // Each borrows from those above it.
  std::shared_ptr<const GeneratedModel> emulated_;  // the drives' bytes, or null
  std::unique_ptr<Checkpoint> checkpoint_;
  EnginePlan plan_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<PagePool> pages_;
};

}  // namespace sluice
