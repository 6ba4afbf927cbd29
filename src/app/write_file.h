// Files that appear whole or not at all. Pure function over the file system.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace sluice {

// Writes `<path>.part`, flushes it to the drive and renames it to `path`; on any error nothing is
// left. kIo names the file.
Status write_file_whole(const std::filesystem::path& path, std::string_view bytes);

}  // namespace sluice
