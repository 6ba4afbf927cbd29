// A file for readers that want a path, rewritten for every input. One at a time, one thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "io/temp_directory.h"

namespace sluice {

class ScratchFile {
 public:
  explicit ScratchFile(std::string_view bytes) {
    std::ofstream out(path(), std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), std::ssize(bytes));
    CHECK(out.good());
  }
  // Makes the file longer with zeros that take no space.
  void resize(uint64_t bytes) const { std::filesystem::resize_file(path(), bytes); }
  std::filesystem::path path() const {
    static const TempDirectory kDirectory;
    return kDirectory.path() / "input";
  }
};

}  // namespace sluice
