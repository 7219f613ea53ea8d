#include "cohort/core/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

TEST(WireTest, VarintsOfEverySizeComeBack) {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t value = bits == 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << bits) - 1;
    WireWriter out;
    out.Varint(value);
    WireReader in(out.view());
    EXPECT_EQ(in.Varint(), value);
    EXPECT_TRUE(in.AtEnd());
  }
}

// Ten bytes have room for 70 bits. A number of more than 64 bits is damaged.
TEST(WireTest, AVarintOfMoreThan64BitsIsDamaged) {
  const std::string nine(9, '\x80');
  for (const char tenth : {'\x02', '\x41', '\x7f', '\x80', '\x81'}) {
    const std::string bytes = nine + tenth + '\x00';
    try {
      WireReader(bytes).Varint();
      ADD_FAILURE() << "a tenth byte " << static_cast<int>(static_cast<unsigned char>(tenth));
    } catch (const DataLossError& e) {
      EXPECT_THAT(e.what(), HasSubstr("64 bits at byte 10 of 11 bytes"));
    }
  }
  EXPECT_EQ(WireReader(nine + '\x01').Varint(), uint64_t{1} << 63);
  EXPECT_THROW(WireReader(nine).Varint(), DataLossError);
}

TEST(WireTest, AStatusComesBack) {
  for (const Status& status : {Status(), Status(Code::kCancelled, ""), Status(Code::kUnauthenticated, "no token")}) {
    WireWriter out;
    PutStatus(out, status);
    WireReader in(out.view());
    EXPECT_EQ(GetStatus(in).ToString(), status.ToString());
    EXPECT_TRUE(in.AtEnd());
  }
  WireReader unknown(std::string_view("\x11\0", 2));  // 17 is the number of no code
  EXPECT_THROW(GetStatus(unknown), DataLossError);
}

}  // namespace
}  // namespace cohort
