#include "engine/work_directory.h"

#include <string>
#include <system_error>
#include <utility>

#include "format/fingerprint.h"
#include "io/part_file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFingerprintNameDigits = 16;  // contracts 3: the digits that name things

}  // namespace

Result<fs::path> work_directory(const Checkpoint& checkpoint, const EngineOptions& options) {
  if (!options.work_dir.empty()) return options.work_dir;
  const fs::path beside = checkpoint.directory() / ".sluice";
  std::error_code ignored;
  const bool exists = fs::exists(beside, ignored);
  if (is_writable_directory(exists ? beside : checkpoint.directory())) return beside;
  if (options.cache_home.empty()) {
    return Error{Code::kInvalid, checkpoint.directory().string() +
                                     " cannot be written, and there is no cache directory of the "
                                     "user: name a directory with --work-dir"};
  }
  TRY(const std::string digits, fingerprint(checkpoint));
  return options.cache_home / "sluice" / digits.substr(0, kFingerprintNameDigits);
}

Result<std::unique_ptr<PackFile>> find_pack(const Checkpoint& checkpoint,
                                            const EngineOptions& options) {
  TRY(const fs::path directory, work_directory(checkpoint, options));
  const fs::path path = directory / kPackName;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::unique_ptr<PackFile>();
  TRY(std::string digits, fingerprint(checkpoint));
  return PackFile::open(path, plan_pack(checkpoint, std::move(digits)), options.direct,
                        options.open_file);
}

}  // namespace sluice
