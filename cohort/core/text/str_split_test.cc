#include "cohort/core/text/str_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;

TEST(StrSplitTest, KeepsWhatIsEmpty) {
  EXPECT_THAT(StrSplit("a:1,b:2", ','), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(StrSplit("one", ','), ElementsAre("one"));
  EXPECT_THAT(StrSplit(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(StrSplit("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace cohort
