#include "engine/cores.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace sluice {
namespace {

constexpr int kCpusMax = 65536;  // bounds a damaged list

// The list of CPUs in this process's affinity mask, or nothing.
std::vector<int> allowed_cpus() {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const size_t begin = line.find_first_not_of(" \t", kKey.size());
    return begin == std::string::npos ? std::vector<int>{} : parse_cpu_list(line.substr(begin));
  }
  return {};
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc{} || first < 0) return {};
    int last = first;
    if (parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc{} || last < first || last > kCpusMax) return {};
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = parsed.ptr;
    if (at != end && *at++ != ',') return {};
  }
  return cpus;
}

int physical_cores() {
  std::set<std::string> cores;  // the sibling lists, equal for the threads of one core
  for (const int cpu : allowed_cpus()) {
    const std::string name = "cpu" + std::to_string(cpu);
    std::ifstream file("/sys/devices/system/cpu/" + name + "/topology/thread_siblings_list");
    std::string siblings;
    // A container may hide the topology: every allowed CPU then counts as a core.
    cores.insert(std::getline(file, siblings) ? siblings : name);
  }
  if (!cores.empty()) return static_cast<int>(cores.size());
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace sluice
