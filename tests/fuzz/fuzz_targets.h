// The fuzz targets: each takes any bytes and aborts (CHECK) when an invariant of its reader breaks.
// The same functions run under libFuzzer and, over the committed inputs, under ctest.
// Thread safety: one thread.
#pragma once

#include <string_view>

namespace sluice {

void fuzz_json(std::string_view input);
void fuzz_config(std::string_view input);
void fuzz_generation_config(std::string_view input);
void fuzz_safetensors(std::string_view input);
void fuzz_index(std::string_view input);
void fuzz_checkpoint(std::string_view input);
void fuzz_tokenizer(std::string_view input);
void fuzz_text(std::string_view input);
void fuzz_chat(std::string_view input);
void fuzz_reply(std::string_view input);

}  // namespace sluice
