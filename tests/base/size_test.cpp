// Byte sizes as people write them.
#include "base/size.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Size, ReadsBinaryAndDecimalUnits) {
  struct Case {
    const char* text;
    uint64_t bytes;
  };
  for (const Case& c :
       {Case{"0", 0}, Case{"4096", 4096}, Case{"12B", 12}, Case{"1kB", 1000}, Case{"1KB", 1000},
        Case{"1KiB", 1024}, Case{"3MB", 3'000'000}, Case{"2MiB", 2097152},
        Case{"64GB", 64'000'000'000}, Case{"64GiB", 68719476736}, Case{"1.5 GB", 1'500'000'000},
        Case{"0.5GiB", 536870912}, Case{"2TB", 2'000'000'000'000}, Case{"1TiB", 1099511627776}}) {
    const Result<uint64_t> bytes = parse_size(c.text);
    ASSERT_TRUE(bytes.ok()) << c.text;
    EXPECT_EQ(bytes.value(), c.bytes) << c.text;
  }
}

TEST(Size, RefusesWhatIsNoSizeAndNamesIt) {
  for (const char* text : {"", "GiB", "-1", "-1GiB", "64gib", "64 GiB ", "1e3", "1GiBx", "nan",
                           "inf", "0x10", "1,5GB", "99999999999TB", " 1"}) {
    const Result<uint64_t> bytes = parse_size(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.error().code, Code::kInvalid);
    EXPECT_NE(bytes.error().what.find("\"" + std::string(text) + "\""), std::string::npos);
  }
}

TEST(Size, WritesThreeSignificantDigits) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(1000), "1.00 kB");
  EXPECT_EQ(format_size(17'547'264), "17.5 MB");
  EXPECT_EQ(format_size(999'499), "999 kB");
  EXPECT_EQ(format_size(999'500), "1.00 MB");
  EXPECT_EQ(format_size(9'996), "10.0 kB");
  EXPECT_EQ(format_size(1'560'860'324'864), "1.56 TB");
  EXPECT_EQ(format_size(UINT64_MAX), "18447 PB");
}

}  // namespace
}  // namespace sluice
