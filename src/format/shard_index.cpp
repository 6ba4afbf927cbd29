#include "format/shard_index.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "io/file.h"

namespace sluice {
namespace {

constexpr uint64_t kIndexBytesMax = uint64_t{1} << 29;  // K3's has 5.5e7 bytes

// A file beside the index, and nothing else.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

// Takes the strings of the top level's "weight_map"; all else of the document is passed over.
class IndexReader final : public JsonSax {
 public:
  explicit IndexReader(ShardIndex* index) : index_(index) {}
  const std::string& problem() const { return problem_; }
  bool has_map() const { return has_map_; }

  bool key(string_t& key) override {
    if (level_ == 1) {
      in_map_ = key == "weight_map";
      if (in_map_ && std::exchange(has_map_, true)) return fail("has weight_map twice");
    } else if (in_map_) {
      tensor_ = key;  // copied: both strings keep their memory for the next name
    }
    return true;
  }
  bool string(string_t& file) override {
    if (!in_map_) return true;
    if (level_ != 2) return fail("weight_map must be an object");
    if (!is_plain_name(file)) {
      return fail("tensor \"" + tensor_ + "\" lies in \"" + file +
                  "\", which is not the name of a file beside the index");
    }
    if (!index_->tensors.insert(tensor_).second) {
      return fail("tensor \"" + tensor_ + "\" is listed twice");
    }
    index_->entries.push_back({.file = file_id(file)});
    return true;
  }
  bool start_object(std::size_t) override {
    ++level_;
    return !in_map_ || level_ <= 2 || fail("weight_map must map names to file names");
  }
  bool end_object() override {
    --level_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++level_;
    return other_value();
  }
  bool end_array() override {
    --level_;
    return true;
  }
  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_integer(number_integer_t) override { return other_value(); }
  bool number_unsigned(number_unsigned_t) override { return other_value(); }
  bool number_float(number_float_t, const string_t&) override { return other_value(); }
  bool binary(binary_t&) override { return other_value(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail("is not JSON at byte " + std::to_string(at));
  }

 private:
  bool other_value() { return !in_map_ || fail("weight_map must map names to file names"); }
  // Names of one shard follow each other, so that the last one is mostly the next one too.
  int32_t file_id(const std::string& file) {
    if (last_file_ >= 0 && index_->files[static_cast<size_t>(last_file_)] == file) {
      return last_file_;
    }
    const auto [place, is_new] =
        file_ids_.emplace(file, static_cast<int32_t>(index_->files.size()));
    if (is_new) index_->files.push_back(file);
    return last_file_ = place->second;
  }
  bool fail(std::string text) {
    problem_ = std::move(text);
    return false;
  }

  ShardIndex* index_;
  std::unordered_map<std::string, int32_t> file_ids_;
  int32_t last_file_ = -1;
  std::string tensor_;
  int64_t level_ = 0;
  bool in_map_ = false;
  bool has_map_ = false;
  std::string problem_;
};

// Files sorted by name, so that nothing depends on the order of the text.
void sort_files(ShardIndex& index) {
  std::vector<int32_t> order(index.files.size());
  std::iota(order.begin(), order.end(), 0);
  const auto name = [&](int32_t id) -> std::string& {
    return index.files[static_cast<size_t>(id)];
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return name(a) < name(b); });
  std::vector<int32_t> rank(order.size());
  std::vector<std::string> sorted;
  for (const int32_t id : order) {
    rank[static_cast<size_t>(id)] = static_cast<int32_t>(sorted.size());
    sorted.push_back(std::move(name(id)));
  }
  index.files = std::move(sorted);
  for (IndexEntry& entry : index.entries) entry.file = rank[static_cast<size_t>(entry.file)];
}

}  // namespace

Result<ShardIndex> read_shard_index(const std::filesystem::path& path) {
  TRY(const std::string text, read_text_file(path, kIndexBytesMax));
  ShardIndex index;
  // Of K3's text an entry takes 120 bytes, and its name 82: the table then never grows.
  constexpr size_t kEntryBytes = 112;
  index.tensors.reserve(text.size() / kEntryBytes, text.size() / 4 * 3);
  index.entries.reserve(text.size() / kEntryBytes);
  IndexReader reader(&index);
  const bool parsed = parse_json_events(text, path.string(), reader).ok();
  const bool usable = parsed && reader.has_map() && index.tensors.size() > 0;
  if (!usable) {
    const std::string problem = parsed ? "has no tensors in weight_map" : reader.problem();
    return Error{Code::kCorrupt, path.string() + ": " + problem};
  }
  sort_files(index);
  return index;
}

}  // namespace sluice
