// make_replica --out DIR: writes the released Kimi K3 without its weights (replica.h), for plans
// and measurements on a machine that does not have it.
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "replica/replica.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--out") {
    std::fprintf(stderr, "usage: make_replica --out DIR\n");
    return 2;
  }
  std::error_code failed;
  std::filesystem::create_directories(argv[2], failed);
  const sluice::Status written = sluice::replica::write_replica(argv[2]);
  if (written.ok()) return 0;
  std::fprintf(stderr, "make_replica: %s\n", written.error().what.c_str());
  return 1;
}
