#include "format/generated_model.h"

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "format/pack_codec.h"
#include "format/pack_layout.h"
#include "format/safetensors.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMarkBytesMax = 4096;
// Names in a pack lack it; every generated model has it.
constexpr std::string_view kPrefix = "language_model.";

// Where the tensors of one file lie. Half a million tensors share a few dozen forms, and differ in
// their keys.
class GeneratedSource final : public ByteSource {
 public:
  GeneratedSource(std::shared_ptr<const GeneratedWeights> weights, FilePtr file)
      : weights_(std::move(weights)), file_(std::move(file)) {}

  void add(uint64_t begin, uint64_t bytes, const GeneratedTensor& tensor) {
    if (bytes == 0) return;
    const auto same = [&tensor](const GeneratedTensor& form) { return same_form(form, tensor); };
    auto form = std::ranges::find_if(forms_, same);
    if (form == forms_.end()) form = forms_.insert(form, tensor);
    segments_.push_back(
        {begin, begin + bytes, tensor.key, static_cast<uint32_t>(form - forms_.begin())});
  }
  void finish() {
    std::ranges::sort(segments_, {}, &Segment::begin);
    segments_.shrink_to_fit();
  }

  uint64_t size() const override { return file_->size(); }
  Status fill(uint64_t offset, std::span<std::byte> out) const override {
    auto at = std::ranges::upper_bound(segments_, offset, {}, &Segment::end);
    while (!out.empty()) {
      const uint64_t begin = at == segments_.end() ? size() : at->begin;
      uint64_t bytes = 0;
      if (offset < begin) {
        bytes = std::min<uint64_t>(begin - offset, out.size());
        TRY_OK(file_->read_at(offset, out.first(bytes)));
      } else {
        bytes = std::min<uint64_t>(at->end - offset, out.size());
        GeneratedTensor tensor = forms_[at->form];
        tensor.key = at->key;
        GeneratedWeights::fill(tensor, offset - at->begin, out.first(bytes));
        ++at;
      }
      out = out.subspan(bytes);
      offset += bytes;
    }
    return Ok{};
  }

 private:
  struct Segment {
    uint64_t begin, end;
    uint64_t key;
    uint32_t form;
  };
  static bool same_form(const GeneratedTensor& a, const GeneratedTensor& b) {
    GeneratedTensor c = a;
    c.key = b.key;
    return c == b;
  }

  std::shared_ptr<const GeneratedWeights> weights_;  // forms borrow its tables
  FilePtr file_;
  std::vector<Segment> segments_;  // rising, without overlap
  std::vector<GeneratedTensor> forms_;
};

Status add_shard(const GeneratedWeights& weights, const File& file, GeneratedSource& source) {
  const auto add = [&](std::string_view name, const TensorInfo& info) -> Status {
    TRY(const GeneratedTensor tensor, weights.tensor(name, info.dtype, info.shape));
    source.add(info.offset, info.bytes, tensor);
    return Ok{};
  };
  TRY(const SafetensorsHeader header, read_safetensors_header(file, add));
  static_cast<void>(header);
  return Ok{};
}

Status add_pack(const GeneratedWeights& weights, const File& file, GeneratedSource& source) {
  TRY(const std::vector<PackTensor> tensors, read_pack_table(file));
  for (const PackTensor& tensor : tensors) {
    const std::string name = std::string(kPrefix) + tensor.name;
    if (tensor.dtype != Dtype::kI8) {
      TRY(const GeneratedTensor stored, weights.tensor(name, tensor.dtype, tensor.shape));
      source.add(tensor.offset, tensor.bytes, stored);
      continue;
    }
    TRY(const GeneratedWeights::Int8 int8, weights.int8(name, tensor.shape));
    source.add(tensor.offset, tensor.scales_at(), int8.codes);
    source.add(tensor.offset + tensor.scales_at(), tensor.bytes - tensor.scales_at(), int8.scales);
  }
  return Ok{};
}

}  // namespace

std::string generated_mark(uint64_t seed) {
  return dump_json({{"generated_weights", kGeneratedVersion}, {"seed", seed}}) + "\n";
}

Result<uint64_t> read_generated_mark(const fs::path& directory) {
  const fs::path path = directory / kGeneratedMark;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Error{Code::kInvalid, directory.string() +
                                     " holds no generated weights, and only those can be read from "
                                     "an emulated drive: make a directory with make_slice, or drop "
                                     "--emulate-drive"};
  }
  TRY(const std::string text, read_text_file(path, kMarkBytesMax));
  TRY(const Json json, parse_json(text, path.string()));
  const bool whole = json.is_object() && json.contains("seed") && json["seed"].is_number_integer();
  if (!whole || json.value("generated_weights", Json()) != Json(kGeneratedVersion)) {
    return Error{Code::kUnsupported,
                 path.string() +
                     " is not of the version of generated weights that this program "
                     "makes, " +
                     std::to_string(kGeneratedVersion) + ": run make_slice again"};
  }
  return json["seed"].get<uint64_t>();
}

Result<std::shared_ptr<const ByteSource>> generated_source(
    std::shared_ptr<const GeneratedWeights> weights, FilePtr file) {
  const GeneratedWeights& made = *weights;
  const File& real = *file;
  auto source = std::make_shared<GeneratedSource>(std::move(weights), std::move(file));
  const bool is_pack = fs::path(real.path()).filename() == kPackName;
  TRY_OK(is_pack ? add_pack(made, real, *source) : add_shard(made, real, *source));
  source->finish();
  return std::shared_ptr<const ByteSource>(std::move(source));
}

GeneratedModel::GeneratedModel(uint64_t seed, const EmulatedDrives& drives,
                               const std::shared_ptr<DriveClock>& clock)
    : weights_(std::make_shared<GeneratedWeights>(seed)) {
  for (int32_t i = 0; i < drives.count; ++i) {
    drives_.push_back(std::make_shared<EmulatedDrive>(drives.traits, clock));
  }
}

Result<std::shared_ptr<GeneratedModel>> GeneratedModel::open(const fs::path& directory,
                                                             const EmulatedDrives& drives,
                                                             std::shared_ptr<DriveClock> clock) {
  CHECK(drives.count > 0);
  TRY(const uint64_t seed, read_generated_mark(directory));
  return std::shared_ptr<GeneratedModel>(new GeneratedModel(seed, drives, clock));
}

Result<FilePtr> GeneratedModel::open_file(const fs::path& path) const {
  TRY(FilePtr real, File::open(path, Direct::kOff));
  TRY(auto source, generated_source(weights_, std::move(real)));
  return VirtualFile::make(path.string(), std::move(source), drives_);
}

EmulatedDrive::Stats GeneratedModel::stats() const {
  EmulatedDrive::Stats all;
  for (const auto& drive : drives_) {
    const EmulatedDrive::Stats one = drive->stats();
    all.reads += one.reads;
    all.bytes += one.bytes;
    all.busy_s += one.busy_s;
    all.late_reads += one.late_reads;
    all.late_s += one.late_s;
  }
  return all;
}

}  // namespace sluice
