#include "format/generated_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "base/bf16.h"
#include "format/quantise.h"

namespace sluice {
namespace {

using Kind = GeneratedTensor::Kind;

// The scrambling of SplitMix64: every bit of x moves every bit of the result.
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The number that belongs to `index` under `key`.
constexpr uint64_t draw(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * 0x9e3779b97f4a7c15u);
}

// FNV-1a of the name, scrambled with the seed.
uint64_t key_of(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix(hash ^ mix(seed));
}

// Keys of the tables, none of which can be the name of a tensor.
constexpr std::string_view kNormalTable = "#normal";
constexpr std::string_view kCodesTable = "#codes";
constexpr std::string_view kScalesTable = "#scales";

constexpr uint32_t kBlockBytes = 4096;    // of bf16, codes and scales; int8 has half as many
constexpr uint32_t kRowPieceBytes = 512;  // of the embeddings
constexpr uint64_t kNormalValues = uint64_t{1} << 19;
constexpr uint64_t kChunkValues = 64;  // each has one value of the largest magnitude
constexpr int64_t kLargest = 181'617;  // 2.4 standard deviations, odd
constexpr uint64_t kCodesBytes = uint64_t{1} << 20;
constexpr uint64_t kScalesBytes = uint64_t{1} << 16;
constexpr uint64_t kPlaceBytes = 64;  // of codes and scales
// Of four row pieces of the embeddings this many are the same for every token.
constexpr uint64_t kCommonPieces = 1;
constexpr uint64_t kALogHeads = 96;  // spec 12.1: what follows is padding

// Counts of E2M1 magnitudes among 256: a normal distribution of deviation 1.86, entropy with the
// sign 3.75 bits (streaming-facts: 3.753 on real rows).
constexpr std::array<int, 8> kMagnitudes = {27, 53, 47, 40, 43, 31, 13, 2};

std::array<uint8_t, 256> magnitude_table() {
  std::array<uint8_t, 256> table{};
  size_t at = 0;
  for (uint8_t magnitude = 0; magnitude < 8; ++magnitude) {
    for (int i = 0; i < kMagnitudes[magnitude]; ++i) table[at++] = magnitude;
  }
  return table;
}

// To nearest even; the values here are finite.
uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Pieces may begin near the end of a table: its begin follows it once more.
void close_table(std::vector<std::byte>& table, size_t piece_bytes) {
  const size_t bytes = table.size();
  table.resize(bytes + piece_bytes);
  std::copy_n(table.begin(), piece_bytes, table.begin() + static_cast<ptrdiff_t>(bytes));
}

// Sums of four 16-bit draws, doubled and odd (so never zero), cut at kLargest, which one value of
// every chunk has: the int8 scale of a row is then known without looking.
std::vector<int32_t> normal_integers(uint64_t seed) {
  const uint64_t key = key_of(kNormalTable, seed);
  std::vector<int32_t> values(kNormalValues);
  for (uint64_t i = 0; i < kNormalValues; ++i) {
    const uint64_t r = draw(key, i);
    const auto sum =
        static_cast<int64_t>((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48));
    values[i] = static_cast<int32_t>(std::clamp(2 * sum - 262'139, -kLargest, kLargest));
  }
  for (uint64_t chunk = 0; chunk < kNormalValues / kChunkValues; ++chunk) {
    const uint64_t r = draw(key, kNormalValues + chunk);
    values[chunk * kChunkValues + r % kChunkValues] =
        static_cast<int32_t>(r >> 63 ? kLargest : -kLargest);
  }
  return values;
}

// The deviation of a matrix that keeps the size of what it multiplies, 2^(-h/2) nearest to
// 1 / sqrt(fan_in).
int32_t half_octaves_of(int64_t fan_in) {
  const auto square = 2 * static_cast<uint64_t>(fan_in) * static_cast<uint64_t>(fan_in);
  return (static_cast<int32_t>(std::bit_width(square)) - 1) / 2;
}

// What the small tensors hold: base + amplitude * u, u from [-1, 1).
struct ElementRecipe {
  std::string_view ending;
  float base, amplitude;
  bool cubed = false;
};
constexpr std::array<ElementRecipe, 7> kElementRecipes = {{
    {"norm.weight", 1.0f, 0.25f},
    {"A_log", 0.0f, 1.0f},
    {"dt_bias", -4.0f, 2.0f},  // a memory of a few to a hundred tokens
    {"conv1d.weight", 0.0f, 0.75f},
    {"e_score_correction_bias", 0.0f, 0.25f, true},
    {"norm0.weight", 1.0f, 0.25f},
    {"norm1.weight", 1.0f, 0.25f},
}};

const ElementRecipe* element_recipe(std::string_view name) {
  const auto found = std::ranges::find_if(kElementRecipes, [name](const ElementRecipe& recipe) {
    return name.ends_with(recipe.ending);
  });
  return found == kElementRecipes.end() ? nullptr : &*found;
}

float element(const GeneratedTensor& t, uint64_t index) {
  if (index >= t.n_values) return 0.0f;
  const auto r = static_cast<int32_t>(draw(t.key, index) >> 40) - (1 << 23);
  const float u = static_cast<float>(r) * 0x1p-23f;
  return t.base + t.amplitude * (t.cubed ? u * u * u : u);
}

void fill_elements(const GeneratedTensor& t, uint64_t offset, std::span<std::byte> out) {
  const uint64_t width = t.is_f32 ? 4 : 2;
  while (!out.empty()) {
    std::array<std::byte, 4> raw;
    const float value = element(t, offset / width);
    const uint16_t rounded = round_to_bf16(value);
    std::memcpy(raw.data(), t.is_f32 ? static_cast<const void*>(&value) : &rounded, width);
    const uint64_t skip = offset % width;
    const uint64_t bytes = std::min<uint64_t>(width - skip, out.size());
    std::copy_n(raw.begin() + static_cast<ptrdiff_t>(skip), bytes, out.begin());
    out = out.subspan(bytes);
    offset += bytes;
  }
}

void fill_constants(float value, uint64_t offset, std::span<std::byte> out) {
  const auto raw = std::bit_cast<std::array<std::byte, 4>>(value);
  for (std::byte& byte : out) byte = raw[offset++ % 4];
}

// Piece number `index` of the tensor, as if it were alone, from its byte `skip` on.
const std::byte* piece(const GeneratedTensor& t, uint64_t index, uint64_t skip) {
  return t.table + (draw(t.key, index) & t.place_mask) * t.place_bytes + skip;
}

void fill_blocks(const GeneratedTensor& t, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t skip = offset % t.block_bytes;
    const uint64_t bytes = std::min<uint64_t>(t.block_bytes - skip, out.size());
    std::memcpy(out.data(), piece(t, offset / t.block_bytes, skip), bytes);
    out = out.subspan(bytes);
    offset += bytes;
  }
}

void fill_rows(const GeneratedTensor& t, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const uint64_t row = offset / t.row_bytes;
    const uint64_t column = offset % t.row_bytes;
    const uint64_t number = column / t.block_bytes;
    const uint64_t skip = column % t.block_bytes;
    const uint64_t bytes =
        std::min<uint64_t>({t.block_bytes - skip, t.row_bytes - column, uint64_t{out.size()}});
    const bool common = number % 4 < kCommonPieces;
    const uint64_t index = common ? number : (row + 1) << 20 | number;
    std::memcpy(out.data(), piece(t, index, skip), bytes);
    out = out.subspan(bytes);
    offset += bytes;
  }
}

Error unsupported(std::string_view name, const char* why) {
  return Error{Code::kUnsupported,
               "tensor \"" + std::string(name) + "\" cannot be generated: " + why};
}

}  // namespace

GeneratedWeights::GeneratedWeights(uint64_t seed) : seed_(seed) {}
GeneratedWeights::~GeneratedWeights() = default;

const GeneratedWeights::Normal& GeneratedWeights::normal(int32_t half_octaves) const {
  const Lock lock(mutex_);
  CHECK(half_octaves >= 0 && half_octaves < static_cast<int32_t>(normals_.size()));
  std::unique_ptr<Normal>& made = normals_[static_cast<size_t>(half_octaves)];
  if (made) return *made;
  made = std::make_unique<Normal>();
  // The integers have the deviation 2^16 * 2 / sqrt(3); times sqrt(3) / 2 or sqrt(3 / 8) in 2^-24.
  const float unit = half_octaves % 2 == 0 ? 14'529'495.0f : 10'273'905.0f;
  const float factor = std::ldexp(unit, -40 - half_octaves / 2);
  made->bf16.resize(2 * kNormalValues);
  const std::vector<int32_t> integers = normal_integers(seed_);
  for (uint64_t i = 0; i < kNormalValues; ++i) {
    const uint16_t bits = round_to_bf16(static_cast<float>(integers[i]) * factor);
    std::memcpy(made->bf16.data() + 2 * i, &bits, sizeof(bits));
  }
  std::vector<int8_t> codes(kChunkValues);
  for (uint64_t i = 0; i < kNormalValues; i += kChunkValues) {
    made->scale = *quantise_row(std::span(made->bf16).subspan(2 * i, 2 * kChunkValues), codes);
    const auto raw = std::as_bytes(std::span(codes));
    made->codes.insert(made->codes.end(), raw.begin(), raw.end());
  }
  close_table(made->bf16, kBlockBytes);
  close_table(made->codes, kBlockBytes / 2);
  return *made;
}

const std::vector<std::byte>& GeneratedWeights::codes_table() const {
  const Lock lock(mutex_);
  if (codes_) return *codes_;
  const uint64_t key = key_of(kCodesTable, seed_);
  const std::array<uint8_t, 256> magnitude = magnitude_table();
  codes_ = std::make_unique<std::vector<std::byte>>(kCodesBytes);
  for (uint64_t i = 0; i < kCodesBytes; ++i) {
    const uint64_t r = draw(key, i);
    const auto low = magnitude[r & 255] | (r >> 8 & 1) << 3;
    const auto high = magnitude[r >> 9 & 255] | (r >> 17 & 1) << 3;
    (*codes_)[i] = static_cast<std::byte>(high << 4 | low);
  }
  close_table(*codes_, kBlockBytes);
  return *codes_;
}

const std::vector<std::byte>& GeneratedWeights::scales_table(int32_t byte) const {
  const Lock lock(mutex_);
  CHECK(byte > 0 && byte < static_cast<int32_t>(scales_.size()));
  auto& made = scales_[static_cast<size_t>(byte)];
  if (made) return *made;
  const uint64_t key = key_of(kScalesTable, seed_);
  made = std::make_unique<std::vector<std::byte>>(kScalesBytes);
  // 1/16 one octave below, 1/16 one above: an entropy of 0.67 bits (streaming-facts: 0.66).
  for (uint64_t i = 0; i < kScalesBytes; ++i) {
    const uint64_t r = draw(key, i) >> 60;
    (*made)[i] = static_cast<std::byte>(byte + (r == 0 ? -1 : r == 1 ? 1 : 0));
  }
  close_table(*made, kBlockBytes);
  return *made;
}

Result<GeneratedTensor> GeneratedWeights::tensor(std::string_view name, Dtype dtype,
                                                 std::span<const int64_t> shape) const {
  if (shape.empty() || std::ranges::any_of(shape, [](int64_t dim) { return dim <= 0; })) {
    return unsupported(name, "it has no elements");
  }
  GeneratedTensor t{.key = key_of(name, seed_)};
  if (const ElementRecipe* recipe = element_recipe(name);
      recipe && (dtype == Dtype::kF32 || dtype == Dtype::kBf16)) {
    t.kind = Kind::kElements;
    t.is_f32 = dtype == Dtype::kF32;
    t.cubed = recipe->cubed;
    t.base = recipe->base;
    t.amplitude = recipe->amplitude;
    t.n_values = name.ends_with("A_log") ? kALogHeads : UINT64_MAX;
    return t;
  }
  t.block_bytes = kBlockBytes;
  if (dtype == Dtype::kU8) {
    const bool packed = name.ends_with("weight_packed");
    if (!packed && !name.ends_with("weight_scale")) return unsupported(name, "its role is unknown");
    // Codes have a deviation of 1.86; the scale makes that 1.86 / sqrt(fan_in), nearly.
    const int32_t scale_byte = 127 - (half_octaves_of(shape.back() * 32) + 1) / 2;
    const auto& table = packed ? codes_table() : scales_table(scale_byte);
    t.table = table.data();
    t.place_bytes = kPlaceBytes;
    t.place_mask = static_cast<uint32_t>((table.size() - kBlockBytes) / kPlaceBytes - 1);
    return t;
  }
  if (dtype != Dtype::kBf16) return unsupported(name, "its dtype is not one of Kimi K3's");
  const bool embeddings = name.ends_with("embed_tokens.weight");
  if (embeddings) {
    t.kind = Kind::kRows;
    t.block_bytes = kRowPieceBytes;
    t.row_bytes = static_cast<uint64_t>(shape.back()) * 2;
  }
  t.table = normal(embeddings ? 0 : half_octaves_of(shape.back())).bf16.data();
  t.place_bytes = 2 * kChunkValues;
  t.place_mask = kNormalValues / kChunkValues - 1;
  return t;
}

Result<GeneratedWeights::Int8> GeneratedWeights::int8(std::string_view name,
                                                      std::span<const int64_t> shape) const {
  TRY(GeneratedTensor codes, tensor(name, Dtype::kBf16, shape));
  if (codes.kind != Kind::kBlocks || shape.back() % static_cast<int64_t>(kChunkValues) != 0) {
    return unsupported(name, "as int8 only a matrix of a multiple of 64 columns can");
  }
  const Normal& values = normal(half_octaves_of(shape.back()));
  codes.table = values.codes.data();
  codes.block_bytes /= 2;
  codes.place_bytes /= 2;
  GeneratedTensor scales{.kind = Kind::kConstants};
  scales.base = values.scale;
  return Int8{codes, scales};
}

void GeneratedWeights::fill(const GeneratedTensor& tensor, uint64_t offset,
                            std::span<std::byte> out) {
  switch (tensor.kind) {
    case Kind::kBlocks:
      return fill_blocks(tensor, offset, out);
    case Kind::kRows:
      return fill_rows(tensor, offset, out);
    case Kind::kElements:
      return fill_elements(tensor, offset, out);
    case Kind::kConstants:
      return fill_constants(tensor.base, offset, out);
  }
}

}  // namespace sluice
