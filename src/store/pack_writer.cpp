// The pack's header is written first and its table grows with the layers, so a ".part" file says by
// itself which layers it has: those whose table entries and checksums are right.
#include "store/pack_writer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/xxh3.h"
#include "format/pack_codec.h"
#include "format/pack_file.h"
#include "io/part_file.h"
#include "store/pack_tensor_writer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCheckBufferBytes = uint64_t{16} << 20;

class PackWriter {
 public:
  PackWriter(const Checkpoint& checkpoint, const PackLayout& layout, const PackJob& job)
      : checkpoint_(checkpoint), layout_(layout), job_(job), path_(job.directory / kPackName) {}

  Result<PackSummary> run() {
    TRY(const bool found, look_at_existing());
    if (summary_.was_complete) return summary_;
    std::error_code failed;
    fs::create_directories(job_.directory, failed);
    if (failed) {
      return Error{Code::kIo, "cannot make " + job_.directory.string() + ": " + failed.message() +
                                  "; name a directory with --work-dir"};
    }
    fs::path lock_path = path_;
    lock_path += ".lock";
    TRY(const std::optional<FileLock> lock, FileLock::try_lock(lock_path));
    if (!lock) {
      return Error{Code::kBudget, "another sluice convert is writing " + path_.string() +
                                      ": wait for it or end it"};
    }
    // Another converter may have finished between the look and the lock.
    if (!found && PackFile::open(path_, layout_, Direct::kAuto).ok()) {
      summary_.was_complete = true;
      return summary_;
    }
    if (found) TRY_OK(take_back());
    TRY_OK(write());
    summary_.bytes_read = bytes_read_;
    return summary_;
  }

 private:
  // Whether there is a pack; if it is whole, the summary says so.
  Result<bool> look_at_existing() {
    std::error_code ignored;
    if (!fs::exists(path_, ignored)) return false;
    const auto pack = PackFile::open(path_, layout_, Direct::kAuto);
    std::string why;
    if (pack.ok()) {
      TRY(const PackTensor* damaged, find_damage(*pack.value()));
      if (damaged == nullptr) {
        summary_.was_complete = true;
        summary_.bytes_read = bytes_read_;
        return true;
      }
      why = path_.string() + " has damaged bytes in tensor \"" + damaged->name + "\"";
    } else {
      why = pack.error().what;
      if (why.ends_with(kPackCure)) why.resize(why.size() - std::strlen(kPackCure));
    }
    note(why + ": it is written again");
    return true;
  }

  // The first tensor that has lost its checksum, or null.
  Result<const PackTensor*> find_damage(const PackFile& pack) {
    progress_ = {.phase = PackPhase::kCheck, .total_bytes = layout_.payload_bytes()};
    const AlignedBuffer buffer(kCheckBufferBytes);
    for (const PackGroup& group : pack.layout().groups) {
      for (const PackTensor& tensor : group.tensors) {
        TRY(const bool whole, has_checksum(pack.file(), tensor, buffer, bytes_read_));
        if (!whole) return &tensor;
        TRY_OK(advance(tensor.bytes));
      }
    }
    return nullptr;
  }

  // A damaged pack is gone on with like an interrupted one.
  Status take_back() {
    fs::path part = path_;
    part += ".part";
    std::error_code failed;
    fs::rename(path_, part, failed);
    if (!failed) return Ok{};
    return Error{Code::kIo, "cannot rename " + path_.string() + ": " + failed.message()};
  }

  Status write() {
    TRY(PartFile part, PartFile::open(path_));
    TRY(const bool goes_on, prepare(part));
    progress_ = {.phase = PackPhase::kWrite, .total_bytes = layout_.payload_bytes()};
    std::vector<bool> kept(layout_.groups.size());
    if (goes_on) TRY_OK(find_kept(part, kept));
    PackTensorWriter writer(checkpoint_, layout_, part, *job_.pool, bytes_read_);
    for (size_t g = 0; g < kept.size(); ++g) {
      if (!kept[g]) TRY_OK(write_group(g, part, writer));
    }
    const PackBytes table = encode_pack_table(layout_);
    TRY_OK(part.write_at(layout_.table_offset, table));
    TRY_OK(part.write_at(layout_.table_offset + layout_.table_bytes,
                         encode_pack_footer(layout_, table)));
    return part.commit();
  }

  // Header and size of the file; whether an earlier run with the same layout left something in it.
  Result<bool> prepare(PartFile& part) {
    const PackBytes header = encode_pack_header(layout_);
    bool goes_on = false;
    if (part.size() >= header.size()) {
      TRY(const FilePtr file, File::open(part.part_path(), Direct::kOff));
      PackBytes found(header.size());
      TRY_OK(file->read_at(0, found));
      goes_on = found == header;
    }
    if (!goes_on && part.size() > 0) TRY_OK(part.discard());
    TRY_OK(part.reserve(layout_.file_bytes));
    if (!goes_on) TRY_OK(part.write_at(0, header));
    return goes_on;
  }

  // Marks the groups that are there to their last byte, and takes over their checksums.
  Status find_kept(const PartFile& part, std::vector<bool>& kept) {
    TRY(const FilePtr file, File::open(part.part_path(), Direct::kAuto));
    const AlignedBuffer buffer(kCheckBufferBytes);
    for (size_t g = 0; g < kept.size(); ++g) {
      PackGroup& group = layout_.groups[g];
      PackBytes entries(group.entries_bytes);
      TRY_OK(file->read_at(group.entries_offset, entries));
      kept[g] = take_pack_checksums(entries, group);
      for (const PackTensor& tensor : group.tensors) {
        if (!kept[g]) break;
        TRY(kept[g], has_checksum(*file, tensor, buffer, bytes_read_));
        TRY_OK(advance(0));
      }
      if (!kept[g]) continue;
      ++summary_.groups_kept;
      for (const PackTensor& tensor : group.tensors) TRY_OK(advance(tensor.bytes));
    }
    if (summary_.groups_kept > 0) {
      note("an earlier run left " + std::to_string(summary_.groups_kept) + " of " +
           std::to_string(kept.size()) + " parts whole: they are kept");
    }
    return Ok{};
  }

  Status write_group(size_t index, PartFile& part, PackTensorWriter& writer) {
    PackGroup& group = layout_.groups[index];
    uint64_t end = group.offset;
    for (PackTensor& tensor : group.tensors) {
      // Nothing but zeros lies between tensors, whatever an earlier run left there.
      TRY_OK(part.write_at(end, PackBytes(tensor.offset - end)));
      end = tensor.offset + tensor.bytes;
      TRY_OK(writer.write(index, tensor, [this](uint64_t bytes) { return advance(bytes); }));
    }
    TRY_OK(part.write_at(group.entries_offset, encode_pack_entries(group)));
    ++summary_.groups_written;
    return Ok{};
  }

  // Tells of `bytes` more; kCancelled when the run is to end.
  Status advance(uint64_t bytes) {
    progress_.done_bytes += bytes;
    if (job_.on_progress) job_.on_progress(progress_);
    if (job_.stop == nullptr || !job_.stop->load()) return Ok{};
    return Error{Code::kCancelled, "stopped; the next sluice convert goes on from here"};
  }

  void note(const std::string& sentence) const {
    if (job_.on_note) job_.on_note(sentence);
  }

  const Checkpoint& checkpoint_;
  PackLayout layout_;  // checksums are filled in as they become known
  const PackJob& job_;
  fs::path path_;
  PackProgress progress_;
  PackSummary summary_;
  std::atomic<uint64_t> bytes_read_{0};
};

}  // namespace

Result<PackSummary> write_pack(const Checkpoint& checkpoint, const PackLayout& layout,
                               const PackJob& job) {
  CHECK(job.pool != nullptr);
  return PackWriter(checkpoint, layout, job).run();
}

}  // namespace sluice
