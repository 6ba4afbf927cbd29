// Headers of safetensors files: what is read, and every damage that is refused.
#include "format/safetensors.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/safetensors_writer.h"
#include "io/temp_directory.h"

namespace sluice {
namespace {

class Safetensors : public testing::Test {
 protected:
  struct Seen {
    std::string name;
    TensorInfo info;
  };

  Result<SafetensorsHeader> read() {
    seen_.clear();
    Result<FilePtr> file = File::open(path(), Direct::kOff);
    if (!file.ok()) return file.error();
    return read_safetensors_header(*file.value(),
                                   [&](std::string_view name, const TensorInfo& info) {
                                     seen_.push_back({std::string(name), info});
                                     return Status(Ok{});
                                   });
  }
  std::filesystem::path path() const { return directory_.path() / "shard.safetensors"; }

  // Writes `header` before a payload of `payload_bytes` and expects a refusal that says `text`.
  void expect_refused(std::string_view header, size_t payload_bytes, const std::string& text) {
    write_raw_safetensors(path(), header, std::string(payload_bytes, 'p'));
    expect_read_refused(text);
  }
  void expect_read_refused(const std::string& text) {
    const Result<SafetensorsHeader> header = read();
    ASSERT_FALSE(header.ok()) << text;
    EXPECT_EQ(header.error().code, Code::kCorrupt);
    EXPECT_TRUE(header.error().what.starts_with(path().string() + ": ")) << header.error().what;
    EXPECT_NE(header.error().what.find(text), std::string::npos) << header.error().what;
    EXPECT_TRUE(seen_.empty());
  }

  std::vector<Seen> seen_;

 private:
  TempDirectory directory_;
};

TEST_F(Safetensors, TensorsAreVisitedInHeaderOrderWithOffsetsOfTheFile) {
  constexpr std::string_view kHeader = R"({"__metadata__":{"format":"pt","x":"y"},)"
                                       R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[6,30]},)"
                                       R"("a":{"data_offsets":[0,6],"shape":[3],"dtype":"BF16"},)"
                                       R"("s":{"dtype":"U8","shape":[],"data_offsets":[30,31]}}  )";
  write_raw_safetensors(path(), kHeader, std::string(31, 'p'));
  const Result<SafetensorsHeader> header = read();
  ASSERT_TRUE(header.ok()) << header.error().what;
  EXPECT_EQ(header.value().header_bytes, kHeader.size());
  EXPECT_EQ(header.value().payload_begin, 8 + kHeader.size());
  EXPECT_EQ(header.value().payload_bytes, 31u);
  ASSERT_EQ(seen_.size(), 3u);
  EXPECT_EQ(seen_[0].name, "b");
  EXPECT_EQ(seen_[0].info.dtype, Dtype::kF32);
  EXPECT_EQ(seen_[0].info.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(seen_[0].info.offset, 8 + kHeader.size() + 6);
  EXPECT_EQ(seen_[0].info.bytes, 24u);
  EXPECT_EQ(seen_[1].name, "a");
  EXPECT_EQ(seen_[1].info.offset, 8 + kHeader.size());
  EXPECT_EQ(seen_[2].info.bytes, 1u);  // no dimensions: one element
}

TEST_F(Safetensors, AFileWithoutTensorsIsEmptyNotBroken) {
  write_raw_safetensors(path(), "{}", "");
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(seen_.empty());
}

TEST_F(Safetensors, TensorsWithoutElementsAreKept) {
  write_safetensors(path(), {{"a", "U8", {0, 4}}, {"b", "U8", {2}}, {"c", "F32", {0}}});
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(seen_.size(), 3u);
}

TEST_F(Safetensors, TheVisitorsErrorIsPassedOn) {
  write_safetensors(path(), {{"a", "U8", {2}}});
  const FilePtr file = File::open(path(), Direct::kOff).value();
  const auto header = read_safetensors_header(*file, [](std::string_view, const TensorInfo&) {
    return Status(Error{Code::kInvalid, "no"});
  });
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().what, "no");
}

TEST_F(Safetensors, ATruncatedFileNamesExpectedAndActualBytes) {
  write_safetensors(path(), {{"a", "F32", {4}}, {"b", "U8", {100}}});
  const uint64_t whole = std::filesystem::file_size(path());
  std::filesystem::resize_file(path(), whole - 1);
  expect_read_refused("has " + std::to_string(whole - 1) + " bytes, but its header needs " +
                      std::to_string(whole));
  std::filesystem::resize_file(path(), 20);
  expect_read_refused("has 20 bytes, but its header alone needs");
  std::filesystem::resize_file(path(), 7);
  expect_read_refused("has only 7 bytes");
  std::filesystem::resize_file(path(), 0);
  expect_read_refused("has only 0 bytes");
}

TEST_F(Safetensors, BytesBehindTheLastTensorAreRefused) {
  write_safetensors(path(), {{"a", "F32", {4}}});
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) + 3);
  expect_read_refused("has 3 bytes behind its last tensor");
}

TEST_F(Safetensors, AnAbsurdHeaderLengthIsRefusedBeforeItIsRead) {
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 62, UINT64_MAX}) {
    std::string bytes(64, ' ');
    std::memcpy(bytes.data(), &length, sizeof(length));
    write_file(path(), bytes);
    expect_read_refused("claims " + std::to_string(length) + " bytes");
  }
}

TEST_F(Safetensors, OverlapsAndHolesNameTheTensor) {
  expect_refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"U8","shape":[8],"data_offsets":[7,15]}})",
                 15, "tensor \"b\" begins at payload byte 7, inside the tensor before it");
  expect_refused(R"({"b":{"dtype":"U8","shape":[8],"data_offsets":[9,17]},)"
                 R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
                 17, "tensor \"b\" begins at payload byte 9, which leaves a hole behind byte 8");
  expect_refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[1,9]}})", 9, "leaves a hole");
}

TEST_F(Safetensors, NumbersNearTheEndOfTheRangeDoNotOverflow) {
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[18446744073709551608,18446744073709551615]}})",
      8, "above 2^63");
  expect_refused(R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", 0,
                 "above 2^63");
  expect_refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
                 "need more than 2^64");
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]},)"
      R"("b":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[9223372036854775807,9223372036854775807]}})",
      0, "need");
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})",
      4, "truncated");
  expect_refused(R"({"a":{"dtype":"U8","shape":[36893488147419103232],"data_offsets":[0,0]}})", 0,
                 "not a plain integer");
}

TEST_F(Safetensors, DuplicateNamesAreRefused) {
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                 3, "tensor \"a\" appears twice");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ appears twice");
}

TEST_F(Safetensors, ByteCountsMustMatchDtypeAndShape) {
  expect_refused(R"({"a":{"dtype":"BF16","shape":[3,2],"data_offsets":[0,11]}})", 11,
                 "has 11 bytes, but its dtype and shape need 12");
  expect_refused(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,4]}})", 4, "need 8");
}

TEST_F(Safetensors, EntriesMustHaveTheirThreeFieldsOnce) {
  for (const char* entry : {R"({"dtype":"U8","shape":[1]})",
                            R"({"dtype":"U8","data_offsets":[0,1]})",
                            R"({"shape":[1],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})",
                            R"({"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1})",
                            R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":["1"],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[[1]],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":null,"data_offsets":[0,1]})",
                            R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})",
                            R"({"dtype":["U8"],"shape":[1],"data_offsets":[0,1]})",
                            R"({"dtype":{},"shape":[1],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})",
                            R"([])",
                            R"("x")",
                            "true",
                            "7",
                            "{}"}) {
    expect_refused(R"({"tensor.x":)" + std::string(entry) + "}", 1, "\"tensor.x\"");
  }
}

TEST_F(Safetensors, UnknownDtypesAreKeptForTheirRanges) {
  write_raw_safetensors(path(), R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]}})",
                        "abc");
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(seen_[0].info.dtype, Dtype::kOther);
  EXPECT_EQ(dtype_bytes(Dtype::kOther), 0u);
}

TEST_F(Safetensors, HeadersThatAreNoJsonObjectAreRefused) {
  for (const char* header :
       {"", "[]", "7", " {}", "{", "{}}", R"({"a")", R"({"a":})", "{\"\xff\":{}}",
        R"({"__metadata__":{"a":{}}})", R"({"__metadata__":{"a":1}})", R"({"__metadata__":"x"})"}) {
    expect_refused(header, 0, "");
  }
}

TEST_F(Safetensors, DtypesHaveNamesAndSizes) {
  EXPECT_STREQ(dtype_name(Dtype::kBf16), "BF16");
  EXPECT_EQ(dtype_bytes(Dtype::kBf16), 2u);
  EXPECT_EQ(dtype_bytes(Dtype::kF32), 4u);
  EXPECT_EQ(dtype_bytes(Dtype::kU8), 1u);
  EXPECT_EQ(dtype_bytes(Dtype::kI64), 8u);
}

}  // namespace
}  // namespace sluice
