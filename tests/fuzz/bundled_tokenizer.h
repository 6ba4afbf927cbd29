// The tokenizer of the bundled model, parsed once. Immutable.
#pragma once

#include "io/file.h"
#include "text/tokenizer.h"

namespace sluice {

inline const Tokenizer& bundled_tokenizer() {
  static const Tokenizer kTokenizer = [] {
    const std::filesystem::path model =
        std::filesystem::path(SLUICE_SOURCE_DIR) / "models" / "tiny-k3";
    return Tokenizer::parse(read_text_file(model / "tiktoken.model", 1 << 24).value(),
                            read_text_file(model / "tokenizer_config.json", 1 << 24).value())
        .value();
  }();
  return kTokenizer;
}

}  // namespace sluice
