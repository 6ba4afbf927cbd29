#include "base/json.h"

#include <unordered_set>
#include <vector>

namespace sluice {
namespace {

// Builds the tree while it bounds the depth and refuses repeated keys.
class TreeBuilder final : public JsonSax {
 public:
  explicit TreeBuilder(Json* root) : root_(root) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return put(Json(nullptr)); }
  bool boolean(bool v) override { return put(Json(v)); }
  bool number_integer(number_integer_t v) override { return put(Json(v)); }
  bool number_unsigned(number_unsigned_t v) override { return put(Json(v)); }
  bool number_float(number_float_t v, const string_t&) override { return put(Json(v)); }
  bool string(string_t& v) override { return put(Json(std::move(v))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& v) override {
    if (!seen_.back().insert(v).second) {
      problem_ = "key \"" + v + "\" appears twice in one object";
      return false;
    }
    key_ = std::move(v);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    problem_ = e.what();
    if (const size_t text = problem_.find("] "); text != std::string::npos) {
      problem_.erase(0, text + 2);
    }
    return false;
  }

 private:
  Json* place(Json value) {
    if (stack_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Appended directly: ordered_map::operator[] would search all earlier keys again.
    auto& object = parent.get_ref<Json::object_t&>();
    object.push_back({std::move(key_), std::move(value)});
    return &object.back().second;
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (stack_.size() == static_cast<size_t>(kJsonDepthMax)) {
      problem_ = "nested deeper than " + std::to_string(kJsonDepthMax) + " levels";
      return false;
    }
    stack_.push_back(place(std::move(value)));
    seen_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    seen_.pop_back();
    return true;
  }

  Json* root_;
  std::vector<Json*> stack_;
  std::vector<std::unordered_set<std::string>> seen_;  // keys of each open object
  std::string key_;
  std::string problem_;
};

Error not_json(std::string_view name, const std::string& problem) {
  return Error{Code::kInvalid, std::string(name) + ": not usable JSON: " + problem};
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name) {
  Json root;
  TreeBuilder builder(&root);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return not_json(name, builder.problem());
  }
  return root;
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status parse_json_events(std::string_view text, std::string_view name, JsonSax& sax) {
  if (!Json::sax_parse(text.begin(), text.end(), &sax)) {
    return not_json(name, "the text is malformed or holds an unexpected value");
  }
  return Ok{};
}

}  // namespace sluice
