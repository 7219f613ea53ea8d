#include "cohort/core/text/nearest_names.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

using Names = std::vector<std::string>;

TEST(NearestNamesTest, TheNearestComesFirst) {
  EXPECT_EQ(NearestNames("task_idex", {"job_name", "task_index", "task_id"}), (Names{"task_index", "task_id"}));
  EXPECT_EQ(NearestNames("RELU", {"Relu6", "Relu", "Elu", "Selu", "Tanh"}, 2), (Names{"Relu", "Elu"}));
}

TEST(NearestNamesTest, NothingIsSuggestedIfNothingIsNear) {
  EXPECT_EQ(NearestNames("volume", {"relu", "sigmoid"}), Names());
  EXPECT_EQ(DidYouMean("volume", {"relu", "sigmoid"}), "");
  EXPECT_EQ(DidYouMean("sigmoidd", {"relu", "sigmoid"}), "; did you mean sigmoid?");
}

}  // namespace
}  // namespace cohort
