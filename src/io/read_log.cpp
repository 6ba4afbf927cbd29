#include "io/read_log.h"

#include <utility>

namespace sluice {

class LoggedFile final : public File {
 public:
  LoggedFile(FilePtr inner, std::shared_ptr<ReadLog> log)
      : File(inner->path(), inner->size(), inner->drive()),
        inner_(std::move(inner)),
        log_(std::move(log)) {}

  bool direct() const override { return inner_->direct(); }
  int page_fd() const override { return log_->noting_ ? -1 : inner_->page_fd(); }
  size_t n_copies() const override { return log_->noting_ ? 1 : inner_->n_copies(); }
  const File& copy(size_t index) const override {
    if (log_->noting_ || inner_->n_copies() == 1) return *this;
    return inner_->copy(index);
  }
  Status read_pages(uint64_t begin, uint64_t needed_bytes,
                    std::span<std::byte> hull) const override {
    if (log_->noting_) log_->note({inner_.get(), begin, needed_bytes});
    return inner_->read_pages(begin, needed_bytes, hull);
  }

 protected:
  Status read_bytes(uint64_t offset, std::span<std::byte> out) const override {
    return inner_->read_at(offset, out);
  }

 private:
  const FilePtr inner_;
  const std::shared_ptr<ReadLog> log_;
};

OpenFile ReadLog::wrap(OpenFile inner) {
  return [log = shared_from_this(), inner = std::move(inner)](
             const std::filesystem::path& path, Direct direct) -> Result<FilePtr> {
    TRY(FilePtr file, inner(path, direct));
    return FilePtr(std::make_unique<LoggedFile>(std::move(file), log));
  };
}

std::vector<LoggedRead> ReadLog::stop() {
  noting_ = false;
  const Lock lock(mutex_);
  return std::exchange(reads_, {});
}

void ReadLog::note(const LoggedRead& read) {
  const Lock lock(mutex_);
  reads_.push_back(read);
}

}  // namespace sluice
