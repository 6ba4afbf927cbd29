// Hostile and damaged tokenizer files are refused with an error that names the place.
#include <string>

#include "text/fixture.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

const std::string& good_model() {
  static const std::string text = read_source_file("models/tiny-k3/tiktoken.model");
  return text;
}

const std::string& good_config() {
  static const std::string text = read_source_file("models/tiny-k3/tokenizer_config.json");
  return text;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void expect_error(const std::string& model, const std::string& config, const std::string& part) {
  const auto parsed = Tokenizer::parse(model, config);
  ASSERT_FALSE(parsed.ok()) << part;
  EXPECT_NE(parsed.error().what.find(part), std::string::npos) << parsed.error().what;
}

TEST(TokenizerFiles, ADamagedVocabularyLineIsNamed) {
  const std::string& config = good_config();
  const std::string& model = good_model();
  expect_error(with(model, "Iw== 2\n", "I*== 2\n"), config, "tiktoken.model line 3: \"I*==\"");
  expect_error(with(model, "Iw== 2\n", "Iw= 2\n"), config, "line 3: \"Iw=\" is not base64");
  expect_error(with(model, "Iw== 2\n", "I=== 2\n"), config, "line 3: \"I===\" is not base64");
  expect_error(with(model, "Iw== 2\n", " 2\n"), config, "line 3: \"\" is not base64");
  expect_error(with(model, "Iw== 2\n", "Iw==2\n"), config, "line 3: wants base64");
  expect_error(with(model, "Iw== 2\n", "\n"), config, "line 3: wants base64");
  expect_error(with(model, "Iw== 2\n", "Iw== 2x\n"), config, "line 3: \"2x\" is not a rank");
  expect_error(with(model, "Iw== 2\n", "Iw== -2\n"), config, "line 3: \"-2\" is not a rank");
  expect_error(with(model, "Iw== 2\n", "Iw== 99999999999999999999\n"), config,
               "line 3: \"99999999999999999999\" is not a rank");
}

TEST(TokenizerFiles, GapsAndRepeatsInTheRanksAreNamed) {
  const std::string& config = good_config();
  const std::string& model = good_model();
  expect_error(with(model, "Iw== 2\n", "Iw== 3840\n"), config,
               "line 3: rank 3840 leaves a gap: 3840 lines must hold ranks 0 to 3839");
  expect_error(with(model, "Iw== 2\n", "Iw== 1\n"), config, "line 3: rank 1 stands on line 2 too");
  expect_error(with(model, "Iw== 2\n", "Ig== 2\n"), config,
               "line 3: the same bytes stand on line 2 too");
  expect_error(with(model, "Iw== 2\n", ""), config, "leaves a gap");
}

TEST(TokenizerFiles, EverySingleByteMustHaveARank) {
  expect_error(with(good_model(), "Iw== 2\n", "IyMjIyMj 2\n"), good_config(),
               "byte 35 has no rank of its own");
  expect_error("", good_config(), "byte 0 has no rank");
}

TEST(TokenizerFiles, LinesMayStandInAnyOrderAndEndInCrLf) {
  std::string model = with(good_model(), "Iw== 2\nJA== 3\n", "JA== 3\r\nIw== 2\r\n") + "\n";
  const auto parsed = Tokenizer::parse(model, good_config());
  ASSERT_TRUE(parsed.ok()) << parsed.error().what;
  EXPECT_EQ(parsed.value().bytes(2), "#");
}

TEST(TokenizerFiles, ABadSpecialTokenEntryIsNamed) {
  const std::string& model = good_model();
  const std::string& config = good_config();
  expect_error(model, with(config, "\"3840\"", "\"3839\""),
               "entry \"3839\" is outside the special ids 3840 to 4095");
  expect_error(model, with(config, "\"4095\"", "\"4096\""), "entry \"4096\" is outside");
  expect_error(model, with(config, "\"4095\"", "\"x\""), "entry \"x\" is not a token id");
  expect_error(model, with(config, "\"[PAD]\"", "7"), "entry \"4095\" has no content string");
  expect_error(model, with(config, "\"[PAD]\"", "\"\""), "entry \"4095\" has no content string");
  expect_error(model, with(config, "\"[UNK]\"", "\"[PAD]\""),
               "ids 4094 and 4095 are both spelled \"[PAD]\"");
  expect_error(model, with(config, "\"[PAD]\"", "\"<|reserved_token_3848|>\""),
               "ids 3848 and 4095 are both spelled");
  expect_error(model, with(config, "<|sep|>", "<|zep|>"), "names no <|sep|>");
  expect_error(model, "{}", "names no <|end_of_msg|>");
  expect_error(model, "[]", "tokenizer_config.json: the file is not a JSON object");
  expect_error(model, R"({"added_tokens_decoder": []})", "is not an object");
  expect_error(model, "{", "tokenizer_config.json");
}

}  // namespace
}  // namespace sluice
