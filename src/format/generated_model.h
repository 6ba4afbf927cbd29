// A snapshot whose weights are generated (tools/make_slice), opened on emulated drives: its files
// lend their headers, every payload byte is computed. The file generated.json marks the directory.
// Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/generated_weights.h"
#include "io/emulated_drive.h"
#include "io/file.h"
#include "io/virtual_file.h"

namespace sluice {

constexpr const char* kGeneratedMark = "generated.json";

// The drives that a generated model lies on: each holds all of it.
struct EmulatedDrives {
  DriveTraits traits;
  int32_t count = 1;
};

// The text of generated.json.
std::string generated_mark(uint64_t seed);
// The seed that it gives; kInvalid when the directory has none, kUnsupported for another version.
Result<uint64_t> read_generated_mark(const std::filesystem::path& directory);

// The bytes of a shard or of an int8 pack: computed where a tensor lies, the file's own elsewhere.
// `file` is one whose header is real, like those that make_slice --headers-only writes.
Result<std::shared_ptr<const ByteSource>> generated_source(
    std::shared_ptr<const GeneratedWeights> weights, FilePtr file);

class GeneratedModel {
 public:
  // kInvalid names the directory when it is no generated one.
  static Result<std::shared_ptr<GeneratedModel>> open(
      const std::filesystem::path& directory, const EmulatedDrives& drives,
      std::shared_ptr<DriveClock> clock = DriveClock::steady());

  // As File::open, for the model's shards and its int8 pack. The files outlive this object.
  Result<FilePtr> open_file(const std::filesystem::path& path) const;

  // Of all drives together; late_s says how far the bytes were not there in time.
  EmulatedDrive::Stats stats() const;

 private:
  GeneratedModel(uint64_t seed, const EmulatedDrives& drives,
                 const std::shared_ptr<DriveClock>& clock);
  std::shared_ptr<const GeneratedWeights> weights_;
  std::vector<std::shared_ptr<EmulatedDrive>> drives_;
};

}  // namespace sluice
