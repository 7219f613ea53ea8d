// The example programs as their readers run them: what they print is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/kernels/cpu/simd.h"
#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The number behind the last `label`; fails the test where there is none.
double NumberBehind(const std::string& text, const std::string& label) {
  const size_t at = text.rfind(label);
  EXPECT_NE(at, std::string::npos) << "no \"" << label << "\" in: " << text;
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + label.size());
}

std::string LastLineOf(const std::string& text, const std::string& start) {
  std::istringstream in(text);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(start, 0) == 0) last = line;
  }
  return last;
}

TEST(ExamplesTest, LocalQuickstartFitsItsLine) {
  LaunchedProgram program({LOCAL_QUICKSTART_PROGRAM});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string last = LastLineOf(program.out(), "y = ");
  EXPECT_NEAR(NumberBehind(last, "y = "), 2, 0.1) << program.out();
  EXPECT_NEAR(NumberBehind(last, " x + "), 10, 0.1) << program.out();
}

TEST(ExamplesTest, ClusterMatMulComputesOnTheWorkerWhatLiesOnTheParameterServers) {
  LaunchedProgram program(Launch({"--ps=2", "--workers=1"}, {CLUSTER_MATMUL_PROGRAM, "--last_step=20"}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  EXPECT_THAT(out, HasSubstr("[worker/0] step: 20, product: 20\n"));  // 1*2 + 2*2 + 3*2 + 4*2
  // Round robin: global_step, x, w.
  EXPECT_THAT(out, AllOf(HasSubstr("[worker/0] global_step: (VarHandleOp): /job:ps/replica:0/task:0/device:CPU:0\n"),
                         HasSubstr("[worker/0] x: (VarHandleOp): /job:ps/replica:0/task:1/device:CPU:0\n"),
                         HasSubstr("[worker/0] w: (VarHandleOp): /job:ps/replica:0/task:0/device:CPU:0\n"),
                         HasSubstr("[worker/0] MatMul: (MatMul): /job:worker/replica:0/task:0/device:CPU:0\n")));
}

TEST(ExamplesTest, TheClassifierLearnsOnACluster) {
  std::vector<std::string> command{MNIST_CLASSIFIER_PROGRAM};
  const char* data = std::getenv("COHORT_DATA_DIR");
  const bool real = data != nullptr && std::filesystem::exists(std::string(data) + "/fashion-mnist");
  if (real) command.push_back("--data_dir=" + std::string(data) + "/fashion-mnist");
  LaunchedProgram program(Launch({"--ps=2", "--workers=2"}, command));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  for (const std::string worker : {"worker 0: ", "worker 1: "}) EXPECT_GT(NumberBehind(out, worker), 0) << out;
  const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
  EXPECT_EQ(last.rfind("[worker/0] test accuracy: ", 0), 0u) << out;
  EXPECT_GE(NumberBehind(last, "test accuracy: "), real ? 0.84 : 0.95) << out;
  EXPECT_EQ(out.find("training on generated images") == std::string::npos, real) << out;
}

// In bfloat16, on a small part of the generated images; guessing gets one in ten right.
TEST(ExamplesTest, TheSeparableNetworkLearnsInMixedPrecision) {
  if (!cpu::HasAvx512()) GTEST_SKIP() << "convolutions in bfloat16 need AVX-512";
  LaunchedProgram program({FASHION_MNIST_PROGRAM, "--mixed_precision", "--max_images=320", "--batch_size=32",
                           "--epochs=2", "--threads=1", "--learning_rate=0.005", "--verbose=2"});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
  EXPECT_EQ(last.rfind("test accuracy: ", 0), 0u) << out;
  EXPECT_THAT(last, HasSubstr(" (of generated images)\n"));
  EXPECT_GE(NumberBehind(last, "test accuracy: "), 0.5) << out;
}

// The last part of the demo, with its settings, on fewer images but past the steps in which a rate that is too large
// shows: with twice the rate the loss is NaN here.
TEST(ExamplesTest, TheDemosMirroredTrainingLearns) {
  LaunchedProgram program(Launch({"--workers=2"}, {FASHION_MNIST_PROGRAM, "--strategy=multi_worker", "--threads=1",
                                                   "--epochs=1", "--max_images=2500", "--verbose=2"}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  EXPECT_EQ(out.find("nan"), std::string::npos) << out;
  EXPECT_EQ(program.err().find("the loss is"), std::string::npos) << program.err();
  const std::string last = LastLineOf(out, "[worker/0] test accuracy: ");
  EXPECT_GE(NumberBehind(last, "test accuracy: "), 0.6) << out;
  EXPECT_LT(NumberBehind(out, " - val_loss: "), 1.0) << out;
}

// A flag that would have no effect is an error.
TEST(ExamplesTest, ReplicasNeedAStrategyThatHasThem) {
  LaunchedProgram program({FASHION_MNIST_PROGRAM, "--num_replicas=2", "--max_images=64", "--epochs=1"});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.err(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("expected another --strategy (mirrored"),
                                   HasSubstr("--num_replicas=2"), HasSubstr("one_device")));
}

}  // namespace
}  // namespace cohort::testing
