#include "io/virtual_file.h"

#include <algorithm>
#include <utility>

namespace sluice {

VirtualFile::VirtualFile(std::string path, std::shared_ptr<const ByteSource> source,
                         std::shared_ptr<EmulatedDrive> drive)
    : File(std::move(path), source->size(), drive->number()),
      source_(std::move(source)),
      drive_(std::move(drive)) {}

FilePtr VirtualFile::make(std::string path, std::shared_ptr<const ByteSource> source,
                          const std::vector<std::shared_ptr<EmulatedDrive>>& drives) {
  CHECK(!drives.empty());
  std::unique_ptr<VirtualFile> file(new VirtualFile(path, source, drives.front()));
  if (drives.size() > 1) {
    for (const auto& drive : drives) {
      file->copies_.emplace_back(new VirtualFile(path, source, drive));
    }
  }
  return file;
}

Status VirtualFile::read_pages(uint64_t begin, uint64_t needed_bytes,
                               std::span<std::byte> hull) const {
  if (needed_bytes == 0) return Ok{};
  TRY_OK(check_range(begin, needed_bytes));
  const uint64_t bytes = std::min<uint64_t>(hull.size(), size() - begin);
  const double done_s = drive_->begin(bytes);
  TRY_OK(source_->fill(begin, hull.first(bytes)));
  drive_->finish(done_s);
  return Ok{};
}

Status VirtualFile::read_bytes(uint64_t offset, std::span<std::byte> out) const {
  return source_->fill(offset, out);
}

}  // namespace sluice
