// Runs examples/model_parallel on a launched cluster: its layers stand on two workers, and the model learns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>

#include "cohort/core/str_cat.h"
#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

class ModelParallelTest : public LaunchTest {};

TEST_F(ModelParallelTest, LayersOfTwoWorkersLearnTogether) {
  LaunchedProgram program(Launch({"--chief", "--workers=2"}, {MODEL_PARALLEL_PROGRAM}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  // Variables, matrix products and their gradients are on the worker of their layer.
  const auto devices = [&](const std::string& pattern) {
    std::map<std::string, int> found;
    const std::regex line(pattern + R"(: (\S+))");
    for (auto it = std::sregex_iterator(out.begin(), out.end(), line); it != std::sregex_iterator(); ++it) {
      ++found[(*it)[1]];
    }
    return found;
  };
  const std::vector<std::pair<std::string, int>> layers = {{"first", 0}, {"second", 0}, {"third", 1}, {"fourth", 1}};
  for (const auto& [layer, worker] : layers) {
    const std::string device = StrCat("/job:worker/replica:0/task:", worker, "/device:CPU:0");
    for (const char* op : {"VarHandleOp", "MatMul", "ResourceApplyAdam"}) {
      const auto found = devices(StrCat(R"((?:\b|update_))", layer, R"((?:_\d+)?/[^\n:]*: \()", op, R"(\))"));
      EXPECT_EQ(found.size(), 1u) << layer << " " << op;
      EXPECT_TRUE(found.contains(device)) << layer << " " << op << "\n" << out.substr(0, 8000);
    }
  }
  std::smatch result;
  ASSERT_TRUE(std::regex_search(out, result, std::regex(R"(loss from (\S+) to (\S+), accuracy (\S+))"))) << out;
  EXPECT_LT(std::atof(result[2].str().c_str()), 0.5 * std::atof(result[1].str().c_str()));
  EXPECT_GT(std::atof(result[3].str().c_str()), 0.9);
}

TEST_F(ModelParallelTest, WithoutAClusterItSaysHowToStart) {
  LaunchedProgram program({MODEL_PARALLEL_PROGRAM});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.err(), ::testing::HasSubstr("cohort launch --chief --workers=2"));
}

}  // namespace
}  // namespace cohort::testing
