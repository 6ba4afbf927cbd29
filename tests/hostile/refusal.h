// How a hostile snapshot must be refused: one line that names the thing, status 1, no crash.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/cli.h"
#include "format/safetensors_writer.h"
#include "format/tiny_copy.h"

namespace sluice {

constexpr const char* kIndexName = "model.safetensors.index.json";

// `sluice run` of one token over the snapshot.
inline ProcessResult run_one_token(const std::filesystem::path& model) {
  return cli({"run", model, "--prompt", "Hi", "--max-new", "1"});
}

inline void expect_one_line(const ProcessResult& result, const std::string& named) {
  EXPECT_EQ(result.signal, 0) << named << ": " << result.err;
  EXPECT_EQ(result.exit_status, 1) << named << ": " << result.err;
  EXPECT_EQ(result.out, "") << named;
  EXPECT_TRUE(result.err.starts_with("sluice: ")) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(named), std::string::npos) << named << ": " << result.err;
  EXPECT_LT(result.err.size(), 2000u) << result.err.substr(0, 500);
}

// Both the library and the program refuse the snapshot and name `named`.
inline void expect_refused(const TinyCopy& copy, const std::string& named) {
  const Result<Checkpoint> opened = copy.open();
  ASSERT_FALSE(opened.ok()) << named;
  EXPECT_NE(opened.error().what.find(named), std::string::npos)
      << named << ": " << opened.error().what;
  expect_one_line(run_one_token(copy.path()), named);
}

// Puts `bytes` in the place of a file of the copy.
inline void replace_file(const TinyCopy& copy, const std::string& name, std::string_view bytes) {
  std::filesystem::remove_all(copy.path() / name);
  write_file(copy.path() / name, bytes);
}

}  // namespace sluice
