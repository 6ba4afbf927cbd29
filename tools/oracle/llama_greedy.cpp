// llama_greedy MODEL.gguf BACKEND.so LOGITS_OUT STEPS ID,ID,...: greedy decoding with llama.cpp's
// library, as an oracle (tools/oracle/llama.sh builds it). Prints one id a step and writes the
// whole logits row of each step, fp32, to LOGITS_OUT.
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kContext = 2048;

struct Arguments {
  const char* model;
  const char* backend;
  const char* logits;
  int steps;
  std::vector<llama_token> prompt;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "llama_greedy: %s\n", what);
  std::exit(1);
}

Arguments parse(char** argv) {
  Arguments arguments{argv[1], argv[2], argv[3], std::atoi(argv[4]), {}};
  for (const char* p = argv[5]; *p;) {
    char* end;
    arguments.prompt.push_back(static_cast<llama_token>(std::strtol(p, &end, 10)));
    if (end == p) fail("ids are numbers with commas between");
    p = *end == ',' ? end + 1 : end;
  }
  return arguments;
}

// Exact where that library offers a choice: fp32 caches, no flash attention.
llama_context* open_context(llama_model* model) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = kContext;
  params.n_threads = params.n_threads_batch = 2;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  return llama_init_from_model(model, params);
}

// Logits of the last of `tokens`, which begin at `position`.
const float* decode(llama_context* context, const std::vector<llama_token>& tokens, int position) {
  const int n = static_cast<int>(tokens.size());
  llama_batch batch = llama_batch_init(n, 0, 1);
  batch.n_tokens = n;
  for (int i = 0; i < n; ++i) {
    batch.token[i] = tokens[static_cast<size_t>(i)];
    batch.pos[i] = position + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = i + 1 == n;
  }
  const int problem = llama_decode(context, batch);
  llama_batch_free(batch);
  if (problem != 0) fail("llama_decode failed");
  return llama_get_logits_ith(context, n - 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: llama_greedy MODEL.gguf BACKEND.so LOGITS_OUT STEPS ID,ID,...");
  const Arguments arguments = parse(argv);
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_CONT) std::fputs(text, stderr);
      },
      nullptr);
  if (!ggml_backend_load(arguments.backend)) fail("the backend does not load");
  llama_model* model = llama_model_load_from_file(arguments.model, llama_model_default_params());
  if (!model) fail("the model does not load");
  llama_context* context = open_context(model);
  if (!context) fail("no context");
  std::FILE* out = std::fopen(arguments.logits, "wb");
  if (!out) fail("LOGITS_OUT cannot be written");

  const auto vocab = static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
  std::vector<llama_token> tokens = arguments.prompt;
  int position = 0;
  for (int step = 0; step < arguments.steps; ++step) {
    const float* logits = decode(context, tokens, position);
    position += static_cast<int>(tokens.size());
    tokens = {static_cast<llama_token>(std::max_element(logits, logits + vocab) - logits)};
    std::printf("%d\n", tokens[0]);
    if (std::fwrite(logits, sizeof(float), vocab, out) != vocab) fail("LOGITS_OUT is cut off");
  }
  if (std::fclose(out) != 0) fail("LOGITS_OUT is cut off");
  llama_free(context);
  llama_model_free(model);
  return 0;
}
