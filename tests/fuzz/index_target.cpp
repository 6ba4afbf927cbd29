// model.safetensors.index.json: what is accepted names only files beside the index, each once.
#include <algorithm>
#include <filesystem>

#include "format/shard_index.h"
#include "fuzz/fuzz_targets.h"
#include "fuzz/scratch_file.h"

namespace sluice {

void fuzz_index(std::string_view input) {
  const ScratchFile scratch(input);
  const Result<ShardIndex> read = read_shard_index(scratch.path());
  if (!read.ok()) {
    CHECK(read.error().code == Code::kCorrupt);
    return;
  }
  const ShardIndex& index = read.value();
  CHECK(!index.files.empty() && index.entries.size() == index.tensors.size());
  CHECK(std::ranges::adjacent_find(index.files, std::greater_equal<>()) == index.files.end());
  for (const std::string& file : index.files) {
    CHECK(std::filesystem::path(file).filename() == file && file != "." && file != "..");
  }
  for (uint32_t i = 0; i < index.entries.size(); ++i) {
    const int32_t file = index.entries[i].file;
    CHECK(file >= 0 && file < std::ssize(index.files));
    CHECK(index.tensors.find(index.tensors.name(i)) == i);
  }
}

}  // namespace sluice
