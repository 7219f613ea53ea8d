// Runs examples/strategy_loop under each kind of strategy. It ends with the same line each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

class StrategyLoopTest : public LaunchTest {
 protected:
  // Runs `command`. Checks that it prints that so many replicas have found the line, and that it prints no other
  // result.
  static void ExpectLine(const std::vector<std::string>& command, const std::string& replicas) {
    LaunchedProgram program(command);
    ASSERT_EQ(program.Wait(), 0) << program.err();
    const std::string out = program.out();
    EXPECT_THAT(out, HasSubstr(replicas + ": y = "));
    EXPECT_THAT(out, HasSubstr("epoch 20: loss "));
    EXPECT_NEAR(NumberBehind(out, "y = "), 2, 0.01) << out;
    EXPECT_NEAR(NumberBehind(out, " x0 + "), -3, 0.01) << out;
    EXPECT_NEAR(NumberBehind(out, " x1 + "), 1, 0.01) << out;
    EXPECT_EQ(SortedLines(out).size(), 21u) << "the chief alone prints:\n" << out;
  }

 private:
  static double NumberBehind(const std::string& text, const std::string& label) {
    const size_t at = text.rfind(label);
    return at == std::string::npos ? 0 : std::atof(text.c_str() + at + label.size());
  }
};

TEST_F(StrategyLoopTest, OnOneDevice) {
  ExpectLine({STRATEGY_LOOP_PROGRAM, "--strategy=default"}, "1 replicas of DefaultStrategy");
  ExpectLine({STRATEGY_LOOP_PROGRAM, "--strategy=one_device"}, "1 replicas of OneDeviceStrategy");
}

TEST_F(StrategyLoopTest, OnSeveralDevices) {
  ExpectLine({STRATEGY_LOOP_PROGRAM, "--strategy=mirrored"}, "2 replicas of MirroredStrategy");
  ExpectLine({STRATEGY_LOOP_PROGRAM, "--strategy=mirrored", "--num_replicas=3"}, "3 replicas of MirroredStrategy");
  ExpectLine({STRATEGY_LOOP_PROGRAM, "--strategy=central_storage"}, "2 replicas of CentralStorageStrategy");
}

TEST_F(StrategyLoopTest, OnSeveralWorkers) {
  const std::vector<std::string> program = {STRATEGY_LOOP_PROGRAM, "--strategy=multi_worker"};
  ExpectLine(Launch({"--workers=2"}, program), "2 replicas of MultiWorkerMirroredStrategy");
  ExpectLine(Launch({"--workers=2"}, {program[0], program[1], "--num_replicas=2"}),
             "4 replicas of MultiWorkerMirroredStrategy");
}

TEST_F(StrategyLoopTest, AFlagThatNothingReadsIsAMistake) {
  LaunchedProgram program({STRATEGY_LOOP_PROGRAM, "--strategy=one_device", "--num_replicas=2"});
  EXPECT_EQ(program.Wait(), 2);
  EXPECT_THAT(program.err(), HasSubstr("--num_replicas=2; got --strategy=one_device"));
}

}  // namespace
}  // namespace cohort::testing
