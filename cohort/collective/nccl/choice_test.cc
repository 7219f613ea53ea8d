#include "cohort/collective/nccl/choice.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

TEST(NcclChoiceTest, EndpointsKeepTheirBytes) {
  const std::string id("a\0b\nc", 5);
  const NcclEndpoint usable = DecodeEndpoint(EncodeEndpoint({"", "0000:01:00.0", id}));
  EXPECT_EQ(usable.missing, "");
  EXPECT_EQ(usable.device, "0000:01:00.0");
  EXPECT_EQ(usable.id, id);
  EXPECT_EQ(DecodeEndpoint(EncodeEndpoint({"no library", "", ""})).missing, "no library");
  for (const char* text : {"", "n", "y", "ycard", "x1\n"}) EXPECT_THROW(DecodeEndpoint(text), DataLossError) << text;
}

TEST(NcclChoiceTest, MembersThatShareACardOfOneHostAreFound) {
  const std::vector<NcclEndpoint> members = {{"", "card 1", "id"}, {"", "card 2", ""}, {"", "card 1", ""}};
  const NcclChoice apart = Choose(members, {{0, 0}, {0, 0}, {1, 1}});
  EXPECT_TRUE(apart.uses_library);
  EXPECT_EQ(apart.id, "id");
  const NcclChoice together = Choose(members, {{0, 0}, {0, 0}, {0, 1}});
  EXPECT_FALSE(together.uses_library);
  EXPECT_EQ(together.same_as, 0);
  EXPECT_EQ(together.rank, 2);
}

TEST(NcclChoiceTest, AMemberWithoutTheLibraryIsFound) {
  const NcclChoice choice = Choose({{"", "card 1", "id"}, {"not there", "", ""}}, {{0, 0}, {1, 1}});
  EXPECT_FALSE(choice.uses_library);
  EXPECT_EQ(choice.missing_at, 1);
}

}  // namespace
}  // namespace cohort::collective
