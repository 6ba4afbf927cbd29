#include "golden/golden_file.h"

#include <algorithm>
#include <cstring>

#include "format/safetensors.h"
#include "io/file.h"
#include "text/chat.h"

namespace sluice {
namespace {

constexpr uint64_t kJsonBytesMax = 1u << 30;

template <class T>
Result<std::vector<T>> read_values(const File& file, const TensorInfo& info) {
  std::vector<T> values(info.bytes / sizeof(T));
  TRY_OK(file.read_at(info.offset, std::as_writable_bytes(std::span(values))));
  return values;
}

}  // namespace

Result<GoldenFile> GoldenFile::open(const std::filesystem::path& json,
                                    const std::filesystem::path& safetensors) {
  GoldenFile goldens;
  TRY(const std::string text, read_text_file(json, kJsonBytesMax));
  TRY(const Json document, parse_json(text, json.string()));
  goldens.prompts = document.at("prompts");
  goldens.qkv_norm_eps = document.value("qkv_norm_eps", goldens.qkv_norm_eps);
  goldens.tolerance = document.value("tolerance", goldens.tolerance);
  TRY(const FilePtr file, File::open(safetensors, Direct::kOff));
  const auto visit = [&](std::string_view name, const TensorInfo& info) -> Status {
    GoldenTensor& tensor = goldens.tensors[std::string(name)];
    tensor.shape = info.shape;
    if (info.dtype == Dtype::kF32) {
      TRY(tensor.floats, read_values<float>(*file, info));
    } else if (info.dtype == Dtype::kI64) {
      TRY(tensor.integers, read_values<int64_t>(*file, info));
    } else {
      return Error{Code::kUnsupported, std::string(name) + " is neither F32 nor I64"};
    }
    return Ok{};
  };
  TRY(const SafetensorsHeader header, read_safetensors_header(*file, visit));
  static_cast<void>(header);
  return goldens;
}

bool GoldenFile::has_text() const {
  return std::ranges::any_of(prompts, [](const Json& prompt) {
    return prompt.contains("text") || prompt.contains("messages");
  });
}

Result<std::vector<Segment>> render_golden(const Json& prompt) {
  Json body = {{"messages", prompt.at("messages")}};
  for (const auto& [key, value] : prompt.at("options").items()) {
    if (key == "effort") {
      body["reasoning_effort"] = value;
    } else if (key == "response_format") {
      body["response_format"] = {{"type", value}};
      if (value == "json_schema") {
        body["response_format"]["json_schema"] = {{"schema", prompt.at("options").at("schema")}};
      }
    } else if (key != "schema") {
      body[key] = value;  // tools, tool_choice, thinking
    }
  }
  TRY(const ChatRequest request, parse_chat(body));
  return render_chat(request);
}

}  // namespace sluice
