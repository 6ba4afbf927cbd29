// sluice bench: rows that a script can read, figures that do not depend on the machine.
#include <fstream>
#include <map>
#include <sstream>

#include "app/cli.h"
#include "base/json.h"

namespace sluice {
namespace {

std::vector<Json> rows_of(const std::vector<std::string>& arguments) {
  const ProcessResult result = cli(arguments);
  EXPECT_EQ(result.exit_status, 0) << result.err;
  std::vector<Json> rows;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    auto row = parse_json(line, "row");
    EXPECT_TRUE(row.ok()) << line;
    if (row.ok()) rows.push_back(row.value());
  }
  return rows;
}

std::vector<std::string> decode(const std::string& seed) {
  return {"bench", "decode", tiny_path(), "--pairs", "3", "--tokens", "2", "--warmup", "2",
          "--seed", seed, "--ram", "24MiB", "--expert-cache", "96KiB"};
}

TEST(Bench, DecodeReadsWhatItMustAndSaysWhatItDid) {
  const auto rows = rows_of(decode("1"));
  ASSERT_EQ(rows.size(), 1u);
  const Json& row = rows[0];
  for (const char* field : {"bench", "arm", "evidence", "commit", "dirty", "host", "isa", "family",
                            "threads", "ram", "spine", "seed", "tokens", "tok_s", "hit_rate",
                            "read_gb_s", "raw_gb_s", "ratio", "tokens_sha"}) {
    EXPECT_TRUE(row.contains(field)) << field;
  }
  EXPECT_EQ(row["evidence"], "measured");
  EXPECT_EQ(row["tokens"], 6);
  EXPECT_LE(row["tok_s"]["lo"], row["tok_s"]["median"]);
  // Whole pages are read: at most one more than the bytes at each end of a record.
  EXPECT_GE(row["bytes_per_token"], row["required_bytes_per_token"]);
}

TEST(Bench, OneSeedMakesOneText) {
  const auto a = rows_of(decode("1")), b = rows_of(decode("1")), c = rows_of(decode("2"));
  ASSERT_EQ(a.size() + b.size() + c.size(), 3u);
  EXPECT_EQ(a[0]["tokens_sha"], b[0]["tokens_sha"]);
  EXPECT_NE(a[0]["tokens_sha"], c[0]["tokens_sha"]);
}

TEST(Bench, RowsGivesOneRowAWidthAndALineThroughThem) {
  const auto rows =
      rows_of({"bench", "rows", tiny_path(), "--pairs", "2", "--warmup", "1", "--rows", "1,3,5"});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1]["rows"], 3);
  EXPECT_EQ(rows[1]["passes"], 2);
  EXPECT_GE(rows[2]["experts_per_pass"], rows[0]["experts_per_pass"]);
  EXPECT_TRUE(rows[3].contains("a_s"));
}

TEST(Bench, IoTriesDepthsOnTheModelsFiles) {
  const auto rows = rows_of({"bench", "io", tiny_path(), "--pairs", "1", "--bytes", "1MiB"});
  ASSERT_GE(rows.size(), 6u);
  for (const Json& row : rows) EXPECT_GT(row["raw_gb_s"]["median"], 0.0) << row.dump();
}

TEST(Bench, CacheRanksPoliciesOnATrace) {
  TempDirectory directory;
  const auto trace = directory.path() / "routes.jsonl";
  std::ofstream out(trace);
  for (int token = 0; token < 40; ++token) {
    out << "{\"tok\": " << token << ", \"layers\": [[" << token % 10 << "], [" << token % 7
        << "]]}\n";
  }
  out.close();
  std::map<double, std::map<std::string, double>> hits;
  for (const Json& row : rows_of({"bench", "cache", "--trace", trace})) {
    hits[row["share"]][row["arm"]] = row["hit_rate"];
  }
  ASSERT_FALSE(hits.empty());
  for (const auto& [share, by_policy] : hits) {
    for (const auto& [policy, rate] : by_policy) EXPECT_LE(rate, by_policy.at("belady")) << policy;
  }
  EXPECT_EQ(hits.at(1.0).at("lru"), 63.0 / 80.0);  // each of 17 experts missed once
}

TEST(Bench, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(cli({"bench"}).exit_status, 2);
  EXPECT_EQ(cli({"bench", "cache"}).exit_status, 2);
  const ProcessResult unknown = cli({"bench", "sideways"});
  EXPECT_EQ(unknown.exit_status, 1);
  EXPECT_NE(unknown.err.find("sideways"), std::string::npos);
  EXPECT_EQ(cli({"bench", "rows", "--rows", "1,,2"}).exit_status, 2);
  EXPECT_EQ(cli({"bench", "cache", "--trace", "/nonexistent"}).exit_status, 1);
}

}  // namespace
}  // namespace sluice
