// Files here are the kernel's: their size is unknown before they are read, so streams read them.
#include "io/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace sluice {
namespace {

// Names that differ between the two versions of control groups.
struct CgroupFiles {
  const char* mount;  // under the root
  const char* limit;
  const char* usage;
  const char* cache_key;  // in memory.stat: file cache that is given up first
};
constexpr CgroupFiles kVersion1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles kVersion2 = {"sys/fs/cgroup", "memory.max", "memory.current",
                                   "inactive_file"};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The file's only word as a number; nothing for "max" or a missing file.
std::optional<uint64_t> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return parse_number(word);
}

// The number after the word `key` at the start of a line ("MemTotal:  16 kB").
std::optional<uint64_t> read_field(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string word, line;
  while (file >> word) {
    if (word == key && file >> word) return parse_number(word);
    std::getline(file, line);
  }
  return std::nullopt;
}

void limit_by(HostMemory& memory, const std::filesystem::path& group, const CgroupFiles& files) {
  const std::optional<uint64_t> limit = read_number(group / files.limit);
  if (!limit) return;
  memory.limit = std::min(memory.limit, *limit);
  // The group is charged for cached file pages too, which the kernel drops when it needs room.
  const uint64_t usage = read_number(group / files.usage).value_or(0);
  const uint64_t cache = read_field(group / "memory.stat", files.cache_key).value_or(0);
  const uint64_t used = usage - std::min(usage, cache);
  memory.available = std::min(memory.available, *limit - std::min(*limit, used));
}

// `path` as in /proc/self/cgroup. A container may see its parent's path but its own tree: levels
// that do not exist are passed over.
void limit_by_ancestors(HostMemory& memory, const std::filesystem::path& root,
                        const CgroupFiles& files, std::string_view path) {
  std::filesystem::path group = std::filesystem::path(path).relative_path();
  while (true) {
    limit_by(memory, root / files.mount / group, files);
    if (group.empty()) return;
    group = group.parent_path();
  }
}

// Whether the comma-separated list of controllers has "memory".
bool has_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

HostMemory read_host_memory(const std::filesystem::path& root) {
  constexpr uint64_t kMeminfoUnit = 1024;  // "kB" in /proc/meminfo
  HostMemory memory;
  if (const auto total = read_field(root / "proc/meminfo", "MemTotal:")) {
    memory.limit = *total * kMeminfoUnit;
  }
  if (const auto available = read_field(root / "proc/meminfo", "MemAvailable:")) {
    memory.available = *available * kMeminfoUnit;
  }
  // Lines "hierarchy:controllers:path"; version 2 is hierarchy 0 without controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view path = std::string_view(line).substr(second + 1);
    if (controllers.empty()) limit_by_ancestors(memory, root, kVersion2, path);
    if (has_memory(controllers)) limit_by_ancestors(memory, root, kVersion1, path);
  }
  memory.available = std::min(memory.available, memory.limit);
  return memory;
}

}  // namespace sluice
