// What the text tests share: the bundled model's tokenizer and files. Immutable once loaded.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace sluice {

inline std::string read_source_file(const std::string& path) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/" + path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline Json json_of(std::string_view text) {
  auto parsed = parse_json(text, "test");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().what) << text;
  return parsed.ok() ? std::move(parsed).value() : Json();
}

inline const Tokenizer& tiny_tokenizer() {
  static const Tokenizer tokenizer = [] {
    auto parsed = Tokenizer::parse(read_source_file("models/tiny-k3/tiktoken.model"),
                                   read_source_file("models/tiny-k3/tokenizer_config.json"));
    CHECK(parsed.ok());
    return std::move(parsed).value();
  }();
  return tokenizer;
}

inline const Json& tiny_goldens() {
  static const Json goldens = json_of(read_source_file("models/tiny-k3/goldens.json"));
  return goldens;
}

// The segments of a request given as JSON text; fails the test if it is refused.
inline std::vector<Segment> render(std::string_view body) {
  const auto request = parse_chat(json_of(body));
  EXPECT_TRUE(request.ok()) << (request.ok() ? "" : request.error().what);
  if (!request.ok()) return {};
  auto segments = render_chat(request.value());
  EXPECT_TRUE(segments.ok()) << (segments.ok() ? "" : segments.error().what);
  return segments.ok() ? std::move(segments).value() : std::vector<Segment>();
}

}  // namespace sluice
