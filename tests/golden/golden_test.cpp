// golden_test MODEL GOLDENS.json GOLDENS.safetensors [--isa X] [--spine bf16|int8] [--threads N]:
// checks a model against golden outputs that another program computed. Prints a line a prompt and
// what differs; exit status 1 if anything does.
//
// Checked per prompt: ids and rendering (where it has a text), greedy ids, their text, top-5 logits
// of the first steps; with the bf16 spine also the logits after the first prompt tokens and every
// tensor of the safetensors file that belongs to it. The int8 spine comes from a pack made for the
// run.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/checkpoint.h"
#include "golden/golden_file.h"
#include "golden/golden_pack.h"
#include "kernels/dispatch.h"
#include "model/model.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

constexpr uint64_t kFileBytesMax = 1u << 30;

using Ids = std::vector<TokenId>;
using Logits = std::vector<float>;

struct Options {
  std::filesystem::path model, json, tensors;
  std::string isa = "auto";
  std::string spine = "bf16";
  int threads = 2;
};

// The arguments after the program's name, or null where they are not as the usage says.
std::unique_ptr<Options> parse_options(std::span<char* const> arguments) {
  auto options = std::make_unique<Options>();
  if (arguments.size() < 3 || arguments.size() % 2 == 0) return nullptr;
  options->model = arguments[0];
  options->json = arguments[1];
  options->tensors = arguments[2];
  for (size_t i = 3; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (name == "--isa") {
      options->isa = value;
    } else if (name == "--spine" && (value == "bf16" || value == "int8")) {
      options->spine = value;
    } else if (name == "--threads") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), options->threads);
      if (error != std::errc{} || end != value.data() + value.size() || options->threads < 1) {
        return nullptr;
      }
    } else {
      return nullptr;
    }
  }
  return options;
}

// Findings of one prompt.
struct Report {
  std::string name;
  float tolerance = 0.0f;
  std::vector<std::string> problems = {};
  float worst = 0.0f;  // largest difference from a golden float
  int64_t n_floats = 0;

  void compare(float got, float want, const std::string& what) {
    const float difference = std::fabs(got - want);
    ++n_floats;
    if (difference > worst || std::isnan(difference)) worst = difference;
    if (!(difference <= tolerance)) {
      problems.push_back(what + ": " + std::to_string(got) + ", golden " + std::to_string(want));
    }
  }
  template <class T>
  void same(const T& got, const T& want, const std::string& what) {
    if (got != want) problems.push_back(what + " differ");
  }
};

class GoldenTest {
 public:
  static Result<std::unique_ptr<GoldenTest>> open(const Options& options) {
    auto test = std::unique_ptr<GoldenTest>(new GoldenTest(options.spine));
    TRY(test->goldens_, GoldenFile::open(options.json, options.tensors));
    if (test->goldens_.has_text()) TRY_OK(test->open_tokenizer(options.model));
    TRY(Checkpoint checkpoint, Checkpoint::open(options.model, Direct::kAuto));
    test->checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
    const PackFile* pack = nullptr;
    if (options.spine == "int8") {
      TRY(test->pack_, GoldenPack::make(*test->checkpoint_, options.threads));
      pack = &test->pack_->file();
    }
    TRY(const KernelTable* table, choose_table(options.isa));
    const int64_t context = test->longest();
    TRY(const MemoryPlan plan, make_memory_plan(plan_input(*test->checkpoint_,
                                                           {.n_sequences = 1,
                                                            .context_positions = context,
                                                            .n_logits = kTentativeRowsMax,
                                                            .threads = options.threads},
                                                           uint64_t{16} << 30, pack)));
    test->pages_ = std::make_unique<PagePool>(PageShape(test->checkpoint_->config()), context);
    TRY(test->model_, Model::open(*test->checkpoint_, plan,
                                  {.table = table,
                                   .threads = options.threads,
                                   .qkv_norm_eps = test->goldens_.qkv_norm_eps,
                                   .pack = pack}));
    return test;
  }

  // Number of prompts with findings, tensors that no prompt claims counted too.
  int run() {
    int failed = 0;
    for (const Json& prompt : goldens_.prompts) {
      const Report report = check(prompt);
      std::printf("%-24s %s  %lld floats, worst difference %.2g\n", report.name.c_str(),
                  report.problems.empty() ? "ok  " : "FAIL",
                  static_cast<long long>(report.n_floats), static_cast<double>(report.worst));
      constexpr size_t kShown = 10;
      for (size_t i = 0; i < std::min(kShown, report.problems.size()); ++i) {
        std::printf("    %s\n", report.problems[i].c_str());
      }
      if (report.problems.size() > kShown) {
        std::printf("    and %zu more\n", report.problems.size() - kShown);
      }
      failed += report.problems.empty() ? 0 : 1;
    }
    for (const auto& [name, tensor] : goldens_.tensors) {
      if (used_.contains(name) || spine_ != "bf16") continue;
      std::printf("tensor %s was not checked: no prompt or no such tensor here\n", name.c_str());
      ++failed;
    }
    return failed;
  }

 private:
  explicit GoldenTest(std::string spine) : spine_(std::move(spine)) {}

  Status open_tokenizer(const std::filesystem::path& directory) {
    TRY(const std::string ranks, read_text_file(directory / "tiktoken.model", kFileBytesMax));
    TRY(const std::string names,
        read_text_file(directory / "tokenizer_config.json", kFileBytesMax));
    TRY(Tokenizer tokenizer, Tokenizer::parse(ranks, names));
    tokenizer_ = std::make_unique<Tokenizer>(std::move(tokenizer));
    return Ok{};
  }

  int64_t longest() const {
    int64_t n = 0;
    for (const Json& prompt : goldens_.prompts) {
      n = std::max(
          n, static_cast<int64_t>(prompt.at("ids").size() + prompt.at(spine_).at("greedy").size()));
    }
    return n + 1;
  }
  int64_t vocab() const { return checkpoint_->config().vocab_size; }

  Report check(const Json& prompt) {
    Report report{.name = prompt.at("name").get<std::string>(), .tolerance = goldens_.tolerance};
    const Ids ids = prompt.at("ids").get<Ids>();
    check_text(prompt, ids, report);
    if (spine_ == "bf16") check_prompt_pass(prompt, ids, report);
    check_greedy(prompt, ids, report);
    return report;
  }

  void check_text(const Json& prompt, const Ids& ids, Report& report) const {
    if (prompt.contains("text")) {
      report.same(tokenizer_->encode(prompt.at("text").get<std::string>()), ids, "prompt ids");
    } else if (prompt.contains("messages")) {
      const auto segments = render_golden(prompt);
      if (!segments.ok()) {
        report.problems.push_back(segments.error().what);
        return;
      }
      report.same(rendered_text(segments.value()), prompt.at("rendered").get<std::string>(),
                  "rendered text");
      Json pairs = Json::array();
      for (const Segment& s : segments.value()) pairs.push_back(Json::array({s.text, s.markup}));
      report.same(pairs, prompt.at("segments"), "segments");
      report.same(tokenizer_->encode(segments.value()), ids, "prompt ids");
    }
    if (const Json& variant = prompt.at(spine_); variant.contains("text")) {
      report.same(tokenizer_->decode(variant.at("greedy").get<Ids>()),
                  variant.at("text").get<std::string>(), "decoded text");
    }
  }

  Logits forward(State& state, const Ids& tokens, RowFate fate, int64_t n_logits, Capture* capture,
                 Report& report) {
    Logits logits(static_cast<size_t>(n_logits * vocab()));
    const Status status = model_->forward({{{&state, tokens, fate, n_logits}}},
                                          {logits.data(), n_logits, vocab()}, nullptr, capture);
    if (!status.ok()) report.problems.push_back(status.error().what);
    return logits;
  }

  // One pass over the prompt with every tensor captured.
  void check_prompt_pass(const Json& prompt, const Ids& ids, Report& report) {
    State state(checkpoint_->config(), *pages_, kTentativeRowsMax);
    Capture capture;
    const auto n = static_cast<int64_t>(ids.size());
    const Logits logits = forward(state, ids, RowFate::kKeep, n, &capture, report);
    if (!report.problems.empty()) return;
    model_->capture_state(state, capture);
    const Json& top = prompt.at("prompt_top5");
    for (size_t row = 0; row < top.size(); ++row) {
      compare_top(logits, static_cast<int64_t>(row), top[row],
                  "logits after prompt token " + std::to_string(row), report);
    }
    const std::string prefix = report.name + ".";
    for (const auto& [name, golden] : goldens_.tensors) {
      if (!name.starts_with(prefix)) continue;
      const std::string what = name.substr(prefix.size());
      if (what == "last_logits") {
        used_.insert(name);
        for (int64_t i = 0; i < vocab(); ++i) {
          report.compare(logits[static_cast<size_t>((n - 1) * vocab() + i)],
                         golden.floats[static_cast<size_t>(i)],
                         name + "[" + std::to_string(i) + "]");
        }
      } else if (const auto found = capture.tensors().find(what);
                 found != capture.tensors().end()) {
        used_.insert(name);
        compare_tensor(found->second, golden, name, report);
      }
    }
  }

  void compare_tensor(const CapturedTensor& got, const GoldenTensor& want, const std::string& name,
                      Report& report) const {
    report.same(got.shape, want.shape, name + ": shapes");
    report.same(got.integers, want.integers, name);
    if (got.floats.size() != want.floats.size()) {
      report.problems.push_back(name + ": types differ");
      return;
    }
    for (size_t i = 0; i < got.floats.size(); ++i) {
      report.compare(got.floats[i], want.floats[i], name + "[" + std::to_string(i) + "]");
    }
  }

  void compare_top(const Logits& logits, int64_t row, const Json& top, const std::string& what,
                   Report& report) const {
    for (const Json& pair : top) {
      const auto id = pair[0].get<int64_t>();
      report.compare(logits[static_cast<size_t>(row * vocab() + id)], pair[1].get<float>(),
                     what + ", id " + std::to_string(id));
    }
  }

  // Greedy decode, one committed row a token.
  void check_greedy(const Json& prompt, const Ids& ids, Report& report) {
    const Ids want = prompt.at(spine_).at("greedy").get<Ids>();
    const Json& top = prompt.at(spine_).at("top5");
    State state(checkpoint_->config(), *pages_, kTentativeRowsMax);
    Logits logits = forward(state, ids, RowFate::kKeep, 1, nullptr, report);
    Ids got;
    while (got.size() < want.size()) {
      if (got.size() < top.size()) {
        compare_top(logits, 0, top[got.size()], "logits of step " + std::to_string(got.size()),
                    report);
      }
      got.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
      logits = forward(state, {got.back()}, RowFate::kTentative, 1, nullptr, report);
      state.commit(1, model_->compute());
    }
    report.same(got, want, "greedy ids");
  }

  std::string spine_;  // names the variant of the goldens that is checked
  GoldenFile goldens_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null if every prompt is ids alone
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<GoldenPack> pack_;  // null for bf16
  std::unique_ptr<PagePool> pages_;
  std::unique_ptr<Model> model_;
  std::set<std::string> used_;  // golden tensors that were compared
};

Result<int> run(const Options& options) {
  TRY(const auto test, GoldenTest::open(options));
  return test->run();
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const auto options = sluice::parse_options({argv + 1, argv + argc});
  if (options == nullptr) {
    std::fprintf(stderr,
                 "usage: golden_test MODEL GOLDENS.json GOLDENS.safetensors [--isa X] "
                 "[--spine bf16|int8] [--threads N]\n");
    return 2;
  }
  const auto failed = sluice::run(*options);
  if (!failed.ok()) {
    std::fprintf(stderr, "golden_test: %s\n", failed.error().what.c_str());
    return 1;
  }
  std::printf("%d with findings\n", failed.value());
  return failed.value() == 0 ? 0 : 1;
}
