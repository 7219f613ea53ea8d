// Runs examples/recommender in one process and on a launched cluster: strings go to workers, embeddings to parameter
// servers, and the saved model predicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::ContainsRegex;

class RecommenderTest : public LaunchTest {
 protected:
  // Models that guess have an AUC of 0.5. The clicks are drawn so that no model has more than about 0.87.
  void ExpectToRecommend(const std::string& out) const {
    EXPECT_GE(NumberBehind(out, "AUC on other clicks: "), 0.7) << out;
    EXPECT_THAT(out, ContainsRegex("may like: .*western [0-9]"));
    EXPECT_TRUE(std::filesystem::is_regular_file(File("recommender.keras")));
  }
  std::string DataDir() const { return "--data_dir=" + File(""); }
};

TEST_F(RecommenderTest, InOneProcess) {
  LaunchedProgram program({RECOMMENDER_PROGRAM, DataDir()});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  ExpectToRecommend(program.out());
}

TEST_F(RecommenderTest, OnALaunchedCluster) {
  LaunchedProgram program(Launch({"--chief", "--workers=2", "--ps=2"}, {RECOMMENDER_PROGRAM, DataDir()}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  ExpectToRecommend(program.out());
}

}  // namespace
}  // namespace cohort::testing
