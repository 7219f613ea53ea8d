// Compares the conversions of kernels with those of the library.
#include "cohort/backends/cuda/dialect/bfloat16.h"

#include <gtest/gtest.h>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/core/bfloat16.h"

namespace cohort::cuda {
namespace {

TEST(BFloat16Test, ConversionsGiveTheBitsOfTheLibrary) {
  for (uint32_t upper = 0; upper <= 0xffffU; ++upper) {
    BFloat16 number;
    number.bits = static_cast<uint16_t>(upper);
    const auto wide = static_cast<float>(number);
    ASSERT_EQ(BitCast<uint32_t>(wide), BitCast<uint32_t>(static_cast<float>(bfloat16::FromBits(number.bits))));
    // Just below, at and just above the middle of two numbers, and NaNs of all kinds.
    for (const uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const auto value = BitCast<float>((upper << 16) | lower);
      ASSERT_EQ(BFloat16(value).bits, bfloat16(value).bits) << upper << " " << lower;
    }
  }
}

TEST(PackTest, PacksAreAlignedToTheirSize) {
  EXPECT_EQ(sizeof(Pack<float>), 16U);
  EXPECT_EQ(alignof(Pack<BFloat16>), 16U);
  EXPECT_EQ(Pack<uint8_t>::kSize, 16);
  EXPECT_EQ(alignof(Pack<bool, 4>), 4U);
  alignas(16) float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_TRUE((IsAligned<float, 4>(data)));
  EXPECT_FALSE((IsAligned<float, 4>(data + 1)));
  Pack<float> pack = LoadPack<4>(data, 1);
  EXPECT_EQ(pack.at[2], 6.0F);
  pack.at[0] = 9;
  StorePack(data, 0, pack);
  EXPECT_EQ(data[0], 9.0F);
}

}  // namespace
}  // namespace cohort::cuda
