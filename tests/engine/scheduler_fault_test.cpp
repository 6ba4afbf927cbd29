// Read errors under a scheduler: they end the request that met them, and nothing else.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/serving.h"

namespace sluice {
namespace {

// Which reads fail, of all faulty files of a test.
struct Faults {
  std::atomic<uint64_t> begin{0}, end{0};  // of the file `path` ends with
  std::atomic<int> failures{0};
  std::string file_name;
};

// A file of the snapshot that cannot read one range.
class FaultyFile final : public File {
 public:
  FaultyFile(FilePtr inner, Faults& faults)
      : File(inner->path(), inner->size(), inner->drive()),
        inner_(std::move(inner)),
        faults_(faults) {}
  bool direct() const override { return inner_->direct(); }
  Status read_pages(uint64_t begin, uint64_t needed_bytes,
                    std::span<std::byte> hull) const override {
    if (hit(begin, needed_bytes)) return read_error(begin, 5);
    return inner_->read_pages(begin, needed_bytes, hull);
  }

 protected:
  Status read_bytes(uint64_t offset, std::span<std::byte> out) const override {
    if (hit(offset, out.size())) return read_error(offset, 5);
    return inner_->read_at(offset, out);
  }

 private:
  bool hit(uint64_t begin, uint64_t bytes) const {
    if (!path().ends_with(faults_.file_name)) return false;
    if (begin >= faults_.end || begin + bytes <= faults_.begin) return false;
    ++faults_.failures;
    return true;
  }

  FilePtr inner_;
  Faults& faults_;
};

OpenFile open_faulty(Faults& faults) {
  return [&faults](const std::filesystem::path& path, Direct direct) -> Result<FilePtr> {
    TRY(FilePtr inner, File::open(path, direct));
    return FilePtr(std::make_unique<FaultyFile>(std::move(inner), faults));
  };
}

// Eight slots for experts, so that every pass reads some again.
EngineOptions starved_options() {
  EngineOptions options = serving_options(4);
  options.expert_cache_bytes = 1 << 19;
  return options;
}

ServeRequest request_of(const std::string& name) {
  const Golden want = golden(name);
  return {.id = name, .tokens = {.prompt = want.prompt, .max_new = std::ssize(want.greedy)}};
}

TEST(SchedulerFaults, AnUnreadableExpertEndsTheRequestsThatNeedItAlone) {
  Faults faults;
  EngineOptions options = starved_options();
  options.open_file = open_faulty(faults);
  Serving serving = open_serving(options);
  ASSERT_TRUE(serving.scheduler);
  const auto alone_text = [&](const std::string& name) { return golden(name).text; };
  const std::vector<std::string> names = {"raw_france", "raw_planet", "raw_unicode",
                                          "raw_code",   "raw_days",   "raw_one_token"};
  const Checkpoint& checkpoint = serving.loaded->checkpoint();
  // Experts one by one, until one is found that some replies need and others do not.
  bool mixed = false;
  for (int32_t expert = 0; expert < 48 && !mixed; ++expert) {
    const ExpertRef ref = checkpoint.expert({LayerId{4}, ExpertId{expert}});
    faults.file_name = checkpoint.file(ref.file).path();
    faults.begin = ref.offset;
    faults.end = ref.offset + checkpoint.expert_layout().record_bytes;
    std::vector<std::shared_ptr<RequestStream>> streams;
    for (const std::string& name : names) {
      streams.push_back(submit_one(*serving.scheduler, request_of(name)));
    }
    int failed = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      const Collected got = collect(*streams[i]);
      if (got.end.error) {
        ++failed;
        EXPECT_EQ(got.end.error->code, Code::kIo);
        EXPECT_NE(got.end.error->what.find("model-0000"), std::string::npos);
        EXPECT_TRUE(alone_text(names[i]).starts_with(got.delta.text)) << names[i];
      } else {
        EXPECT_EQ(got.delta.text, alone_text(names[i])) << names[i];
      }
    }
    mixed = failed > 0 && failed < static_cast<int>(names.size());
    faults.end = 0;
  }
  EXPECT_TRUE(mixed);
  EXPECT_GT(faults.failures, 0);

  // The drive is well again: the next requests succeed.
  for (const std::string& name : names) {
    const Collected got = collect(*submit_one(*serving.scheduler, request_of(name)));
    EXPECT_EQ(got.delta.text, alone_text(name));
    EXPECT_FALSE(got.end.error);
  }
}

}  // namespace
}  // namespace sluice
