// Runs the second half of guide-002 (examples/guides/002_migration/keras_ps.cc) in one process, and on a launched
// cluster, and compares its lines with the guide's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

class Guide002KerasTest : public LaunchTest {};

// Returns the losses of the lines "10/10 - 0s - 4ms/step - loss: 7.4912".
std::vector<double> Losses(const std::string& text) {
  static const std::regex kLine(R"(10/10 - \d+s - \S+/step - loss: (\S+))");
  std::vector<double> losses;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kLine); it != std::sregex_iterator(); ++it) {
    losses.push_back(std::atof((*it)[1].str().c_str()));
  }
  return losses;
}

void ExpectToFall(const std::vector<double>& losses, size_t begin, size_t end) {
  ASSERT_GE(losses.size(), end);
  for (size_t i = begin + 1; i < end; ++i) EXPECT_LE(losses[i], losses[i - 1]) << "epoch " << i - begin + 1;
}

TEST_F(Guide002KerasTest, InOneProcess) {
  LaunchedProgram program({GUIDE_002_KERAS_PS_PROGRAM});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out(), err = program.err();
  for (
      const char* line :
      {R"(`tf\.distribute\.experimental\.ParameterServerStrategy` is initialized with cluster_spec: )"
       R"(ClusterSpec\(\{'chief': \['[^']+'\], 'ps': \['[^']+', '[^']+'\], 'worker': \['[^']+', '[^']+', '[^']+'\]\}\))",
       R"(ParameterServerStrategyV2 is now connecting to cluster with cluster_spec: ClusterSpec\(\{)",
       R"(ParameterServerStrategy \(CentralStorageStrategy if you are using a single machine\) with compute_devices = )"
       R"(\['/job:chief/replica:0/task:0/device:CPU:0'\], variable_device = )",
       R"(Number of GPUs on workers: 0)",
       R"(Single-worker MultiWorkerMirroredStrategy with local_devices = \('/device:CPU:0',\), )"
       R"(communication = CommunicationImplementation\.AUTO\n)"}) {
    EXPECT_TRUE(std::regex_search(err, std::regex(line))) << line << "\nnot in\n" << err;
  }
  for (int epoch = 1; epoch <= 5; ++epoch) EXPECT_THAT(out, HasSubstr("Epoch " + std::to_string(epoch) + "/5\n"));
  EXPECT_TRUE(std::regex_search(out, std::regex(R"(\{'loss': \d+\.?\d*\}\n)"))) << out;
  const std::vector<double> losses = Losses(out);  // five epochs, the evaluation, five epochs of the other strategy
  ASSERT_EQ(losses.size(), 11u) << out;
  ExpectToFall(losses, 0, 5);
  ExpectToFall(losses, 6, 11);
}

TEST_F(Guide002KerasTest, FlagsThatItDoesNotHaveAreRefused) {
  LaunchedProgram wrong({GUIDE_002_KERAS_PS_PROGRAM, "--hepl"});
  EXPECT_EQ(wrong.Wait(), 2);
  EXPECT_THAT(wrong.err(), HasSubstr("guide_002_keras_ps: there is no flag --hepl; did you mean --help?"));
  LaunchedProgram help({GUIDE_002_KERAS_PS_PROGRAM, "--help"});
  EXPECT_EQ(help.Wait(), 0);
  EXPECT_THAT(help.out(), HasSubstr("TF_CONFIG"));
}

TEST_F(Guide002KerasTest, OnALaunchedCluster) {
  LaunchedProgram program(Launch({"--chief", "--workers=3", "--ps=2"}, {GUIDE_002_KERAS_PS_PROGRAM}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  const std::vector<double> losses = Losses(program.out());
  ASSERT_EQ(losses.size(), 6u) << program.out();
  ExpectToFall(losses, 0, 5);
}

}  // namespace
}  // namespace cohort::testing
