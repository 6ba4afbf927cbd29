#include "text/stream_decoder.h"

#include <utility>

#include "text/utf8.h"

namespace sluice {

std::string StreamDecoder::push(TokenId id) {
  held_ += tokenizer_->bytes(id);
  std::string text;
  held_.erase(0, append_utf8_complete(held_, text));
  return text;
}

std::string StreamDecoder::flush() {
  std::string text;
  append_utf8_lossy(held_, text);
  held_.clear();
  return text;
}

}  // namespace sluice
