#include "text/python_json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice {
namespace {

// repr(float): shortest digits that read back as the same double; an exponent below -4 or from 16
// on.
void append_float(double value, std::string& out) {
  char buffer[32] = {};  // atoi below wants an end
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = text.find('e');
  if (e == std::string_view::npos) {  // inf, nan: no JSON text yields them
    out += text;
    return;
  }
  const int exponent = std::atoi(buffer + e + 1);
  std::string digits;  // without sign and point
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  if (text[0] == '-') out.push_back('-');
  const auto whole =
      static_cast<size_t>(exponent + 1);  // digits before the point, if exponent >= 0
  if (exponent < -4 || exponent >= 16) {
    out.push_back(digits[0]);
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out += text.substr(e);
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (digits.size() <= whole) {
    out.append(digits).append(whole - digits.size(), '0').append(".0");
  } else {
    out.append(digits, 0, whole).append(".").append(digits, whole);
  }
}

class Writer {
 public:
  Writer(JsonStyle style, std::string& out)
      : sorted_(style == JsonStyle::kCompactSorted), out_(out) {}

  void value(const Json& v) {
    switch (v.type()) {
      case Json::value_t::object:
        return object(v.get_ref<const Json::object_t&>());
      case Json::value_t::array:
        return array(v);
      case Json::value_t::string:
        return string(v.get_ref<const std::string&>());
      case Json::value_t::boolean:
        out_ += v.get<bool>() ? "true" : "false";
        return;
      case Json::value_t::number_integer:
        out_ += std::to_string(v.get<int64_t>());
        return;
      case Json::value_t::number_unsigned:
        out_ += std::to_string(v.get<uint64_t>());
        return;
      case Json::value_t::number_float:
        return append_float(v.get<double>(), out_);
      case Json::value_t::binary:
        out_.append(v.get_binary().begin(), v.get_binary().end());
        return;
      case Json::value_t::null:
      case Json::value_t::discarded:
        out_ += "null";
        return;
    }
  }

 private:
  void object(const Json::object_t& object) {
    std::vector<const Json::object_t::value_type*> entries;
    for (const auto& entry : object) entries.push_back(&entry);
    if (sorted_) {  // the byte order of UTF-8 is the order of code points
      std::sort(entries.begin(), entries.end(),
                [](auto* a, auto* b) { return a->first < b->first; });
    }
    out_.push_back('{');
    for (const auto* entry : entries) {
      if (entry != entries.front()) out_ += sorted_ ? "," : ", ";
      string(entry->first);
      out_ += sorted_ ? ":" : ": ";
      value(entry->second);
    }
    out_.push_back('}');
  }

  void array(const Json& items) {
    out_.push_back('[');
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += sorted_ ? "," : ", ";
      value(items[i]);
    }
    out_.push_back(']');
  }

  void string(const std::string& text) {
    out_.push_back('"');
    append_json_escaped(text, out_);
    out_.push_back('"');
  }

  const bool sorted_;
  std::string& out_;
};

// Builds the tree that json.loads would.
class PythonReader final : public JsonSax {
 public:
  explicit PythonReader(Json* root) : root_(root) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t& text) override {
    if (text.find_first_of(".eE") != std::string::npos) return put(v);
    return put(Json::binary(std::vector<uint8_t>(text.begin(), text.end())));
  }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  Json* place(Json value) {
    Json* at = root_;
    if (!stack_.empty() && stack_.back()->is_array()) {
      stack_.back()->push_back(nullptr);
      at = &stack_.back()->back();
    } else if (!stack_.empty()) {
      at = entry();
    }
    *at = std::move(value);
    return at;
  }
  // The value of key_ in the innermost object: that of an earlier entry of the same key, or a new
  // one. Not operator[], which would search all entries.
  Json* entry() {
    auto& object = stack_.back()->get_ref<Json::object_t&>();
    const auto [known, is_new] = entry_of_.back().try_emplace(key_, object.size());
    if (is_new) object.push_back({std::move(key_), Json()});
    return &object.data()[known->second].second;
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (stack_.size() == static_cast<size_t>(kJsonDepthMax)) return false;
    stack_.push_back(place(std::move(value)));
    entry_of_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    entry_of_.pop_back();
    return true;
  }

  Json* root_;
  std::vector<Json*> stack_;  // open containers; only the innermost one grows
  std::vector<std::unordered_map<std::string, size_t>> entry_of_;  // keys of each open object
  std::string key_;
};

}  // namespace

std::string python_json(const Json& value, JsonStyle style) {
  std::string out;
  Writer(style, out).value(value);
  return out;
}

void append_json_escaped(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20) {
          out.append("\\u00").append(1, kHex[c >> 4]).append(1, kHex[c & 0xF]);
        } else {
          out.push_back(c);
        }
    }
  }
}

Result<Json> parse_python_json(std::string_view text) {
  Json root;
  PythonReader reader(&root);
  TRY_OK(parse_json_events(text, "JSON text", reader));
  return root;
}

}  // namespace sluice
