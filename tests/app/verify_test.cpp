// sluice verify as a program. What it computes is tested in tests/replica.
#include "app/cli.h"

namespace sluice {
namespace {

TEST(CliVerify, SaysThatAnchorsExistOnlyForTheReleasedModel) {
  const ProcessResult result = cli({"verify", "--anchors"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("only for the released Kimi K3"), std::string::npos) << result.err;
}

TEST(CliVerify, WantsToKnowWhatToVerify) {
  const ProcessResult result = cli({"verify"});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.err.find("--anchors"), std::string::npos) << result.err;
}

TEST(CliVerify, RefusesTheQuantisedSpine) {
  const ProcessResult result = cli({"verify", "--anchors", "--spine", "int8"});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.err.find("bf16"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace sluice
