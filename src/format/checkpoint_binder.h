// Binds the tensors of all shard headers to their roles while a checkpoint opens. One owner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/checkpoint.h"
#include "format/expert_binder.h"
#include "format/name_table.h"
#include "format/tensor_names.h"

namespace sluice {

class CheckpointBinder {
 public:
  // Fills `checkpoint`, whose config and files are set. `prefix` stands before every tensor name.
  CheckpointBinder(Checkpoint& checkpoint, std::string prefix);

  // Takes one tensor of a header.
  Status add(int32_t file_index, std::string_view name, const TensorInfo& info);
  // After all headers: every needed tensor must be there.
  Status finish();

 private:
  struct Need {
    int32_t layer = -1;  // -1: outside the layers
    TensorSpec spec;
    bool bound = false;
  };

  void add_needs(int32_t layer, std::vector<TensorSpec> specs);
  Status bind(Need& need, int32_t file_index, std::string_view name, const TensorInfo& info);
  Status check_tensor(const TensorSpec& spec, const TensorInfo& info) const;
  Status add_unclaimed(int32_t file_index, std::string_view name);
  TensorRef& slot(const Need& need);

  Checkpoint& checkpoint_;
  std::string prefix_;
  ExpertBinder experts_;
  std::vector<Need> needs_;
  NameTable names_;  // of needs_, prefix included
};

}  // namespace sluice
