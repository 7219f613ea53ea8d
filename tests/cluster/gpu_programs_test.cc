// Runs the programs of guide 004, and fashion_mnist under each strategy, on fake cards (fake_cards.cc): which devices
// they find, use and name, with two cards and with one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/example_output.h"
#include "tests/cluster/guide_fixture.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two short epochs.
const Words kShort = {"--epochs=2", "--steps_per_epoch=2", "--batch_size=4", "--max_images=32", "--threads=1"};

std::unique_ptr<LaunchedProgram> Start(const Words& command, const Words& flags, const char* cards) {
  Words words = command;
  words.insert(words.end(), flags.begin(), flags.end());
  return std::make_unique<LaunchedProgram>(words, [cards] {
    setenv("COHORT_FAKE_CARDS", cards, 1);
    for (const char* name : {"TF_CONFIG", "COHORT_DATA_DIR", "CUDA_VISIBLE_DEVICES"}) unsetenv(name);
  });
}

class Guide004OnGpusTest : public ::testing::Test {
 protected:
  // Runs one of the guide's programs and expects this exit code.
  void Run(const std::string& program, const Words& flags, const char* cards, int exit_code) {
    Words all = kShort;
    all.insert(all.end(), flags.begin(), flags.end());
    const auto run = Start({GUIDE_004_FASHION_MNIST_ON_FAKE_CARDS_PROGRAM, "--program=" + program}, all, cards);
    EXPECT_EQ(run->Wait(), exit_code) << run->out() << run->err();
    out_ = run->out();
    err_ = run->err();
  }
  std::string out_, err_;
};

// The guide: list_physical_devices, set_visible_devices(gpus[1]), set_memory_growth for each, list_logical_devices.
TEST_F(Guide004OnGpusTest, BaselineUsesTheSecondCard) {
  Run("baseline", {"--visible_gpu=1"}, "2", 0);
  EXPECT_THAT(out_, HasSubstr("the num of gpu 2\nthe num of logical gpu 1\n"));
  EXPECT_THAT(out_, AllOf(HasSubstr("Total params: 2,887,306"), HasSubstr("Epoch 2/2"), HasSubstr("accuracy: ")));
  EXPECT_THAT(err_, AllOf(HasSubstr("Created device /device:GPU:0"), HasSubstr("physical GPU (device: 1, name: "),
                          Not(HasSubstr("(device: 0, name: "))));
}

TEST_F(Guide004OnGpusTest, WithOneCardTheSecondOneIsAnErrorThatListsTheDevices) {
  Run("baseline", {"--visible_gpu=1"}, "1", 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("InvalidArgument"), HasSubstr("got 1; this machine has /physical_device:GPU:0")));
}

TEST_F(Guide004OnGpusTest, WithOneCardTheBaselineTrainsOnIt) {
  Run("baseline", {}, "1", 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("the num of gpu 1\nthe num of logical gpu 1\n"), HasSubstr("Epoch 2/2")));
  EXPECT_THAT(err_, HasSubstr("physical GPU (device: 0, name: "));
}

TEST_F(Guide004OnGpusTest, TwoCardsOfOneMachineAreMirrored) {
  Run("single_machine_multi_gpu", {}, "2", 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("the num of gpu 2\nthe num of logical gpu 2\n"), HasSubstr("Epoch 2/2")));
  EXPECT_THAT(err_, HasSubstr("Using MirroredStrategy with devices ('/device:GPU:0', '/device:GPU:1')"));
}

TEST_F(Guide004OnGpusTest, SettingsAfterTheStrategyAreTheGuidesErrors) {
  Run("baseline", {"--too_late=visible"}, "2", 1);
  EXPECT_THAT(err_, HasSubstr("Visible devices cannot be modified after being initialized"));
}

// Two machines with a GPU each.
class Guide004MachinesWithGpusTest : public GuideTest {
 protected:
  Guide004MachinesWithGpusTest() : GuideTest({"172.17.0.2", "172.17.0.3"}) {}
  LaunchedProgram& StartWorker(const std::string& host, const std::string& program, const Words& flags = kShort) {
    std::string command =
        std::string("exec ") + GUIDE_004_FASHION_MNIST_ON_FAKE_CARDS_PROGRAM + " --program=" + program;
    for (const std::string& flag : flags) command += " " + flag;
    Words variables = insecure_;
    variables.push_back("COHORT_FAKE_CARDS=1");
    return Type(host, command, variables);
  }
};

TEST_F(Guide004MachinesWithGpusTest, TwoMachinesTrainTogether) {
  LaunchedProgram* const workers[] = {&StartWorker("172.17.0.2", "two_machine_worker01"),
                                      &StartWorker("172.17.0.3", "two_machine_worker02")};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(workers[i]->Wait(), 0) << Output();
    EXPECT_THAT(workers[i]->err(),
                AllOf(HasSubstr("num_workers = 2, local_devices = ('/job:worker/replica:0/task:" + std::to_string(i) +
                                "/device:GPU:0',)"),
                      HasSubstr("physical GPU (device: 0, name: "), HasSubstr("NCCL 2.28.7 connects 2 members")));
    EXPECT_THAT(workers[i]->out(), HasSubstr("Epoch 2/2"));
  }
}

// Almost all of a short step is spent in a collective or in waiting for one.
TEST_F(Guide004MachinesWithGpusTest, AWorkerThatIsKilledInACollectiveIsNamedByTheOther) {
  const Words for_ever = {"--epochs=1000000", "--steps_per_epoch=2", "--batch_size=4", "--max_images=32",
                          "--threads=1"};
  LaunchedProgram* const workers[] = {&StartWorker("172.17.0.2", "two_machine_worker01", for_ever),
                                      &StartWorker("172.17.0.3", "two_machine_worker02", for_ever)};
  for (LaunchedProgram* worker : workers) ASSERT_TRUE(worker->WaitForText("Epoch 2/")) << Output();
  workers[1]->Signal(SIGKILL);
  EXPECT_EQ(workers[1]->Wait(), 128 + SIGKILL);
  EXPECT_EQ(workers[0]->Wait(), 1) << Output();
  EXPECT_THAT(workers[0]->err(), HasSubstr("/job:worker/replica:0/task:1"));
}

TEST(DevicesCommandTest, ListsTheDevicesOfTheMachine) {
  const auto run = Start({COHORT_PROGRAM, "devices"}, {}, "2");  // this program has no fake cards
  EXPECT_EQ(run->Wait(), 0) << run->err();
  EXPECT_EQ(run->out().rfind("/physical_device:CPU:0\n", 0), 0u) << run->out();
  // A build without CUDA and one with it on a machine without a card say so; the reasons differ.
  if (run->out().find("GPU") == std::string::npos) {
    EXPECT_THAT(run->err(), HasSubstr("no GPU is used, and all work is done on the CPU: "));
  }
}

// fashion_mnist prints its strategy, the devices of the replicas, and where the variables are.
std::string RunFashionMnist(const Words& flags, const char* cards) {
  Words all = {"--epochs=1", "--max_images=8", "--batch_size=4", "--threads=1", "--verbose=0"};
  all.insert(all.end(), flags.begin(), flags.end());
  const auto run = Start({FASHION_MNIST_ON_FAKE_CARDS_PROGRAM}, all, cards);
  EXPECT_EQ(run->Wait(), 0) << run->out() << run->err();
  EXPECT_THAT(run->out(), HasSubstr("test accuracy: "));
  return run->out();
}

TEST(FashionMnistOnGpusTest, OneDeviceIsTheFirstGpu) {
  EXPECT_THAT(RunFashionMnist({}, "2"), HasSubstr("OneDeviceStrategy: 1 replica on /device:GPU:0 (Fake Card)\n"));
}

TEST(FashionMnistOnGpusTest, MirroredTakesAllGpus) {
  EXPECT_THAT(RunFashionMnist({"--strategy=mirrored"}, "2"),
              HasSubstr("MirroredStrategy: 2 replicas on /device:GPU:0 (Fake Card) and /device:GPU:1 (Fake Card)\n"));
}

TEST(FashionMnistOnGpusTest, TwoReplicasShareOneCard) {
  EXPECT_THAT(RunFashionMnist({"--strategy=mirrored", "--num_replicas=2"}, "1"),
              HasSubstr("MirroredStrategy: 2 replicas on /device:GPU:0 (Fake Card) and /device:GPU:1 (Fake Card)\n"));
}

TEST(FashionMnistOnGpusTest, CentralStorageKeepsTheParametersOnTheCpu) {
  EXPECT_THAT(
      RunFashionMnist({"--strategy=central_storage"}, "2"),
      HasSubstr("CentralStorageStrategy: 2 replicas on /device:GPU:0 (Fake Card) and /device:GPU:1 (Fake Card), "
                "variables on /device:CPU:0\n"));
}

TEST(FashionMnistOnGpusTest, AWorkerAloneMirrorsOnAllGpus) {
  EXPECT_THAT(
      RunFashionMnist({"--strategy=multi_worker"}, "2"),
      HasSubstr(
          "MultiWorkerMirroredStrategy: 2 replicas on /device:GPU:0 (Fake Card) and /device:GPU:1 (Fake Card)\n"));
}

TEST(FashionMnistOnGpusTest, WithoutCardsItTrainsOnTheCpu) {
  EXPECT_THAT(RunFashionMnist({}, "0"), HasSubstr("OneDeviceStrategy: 1 replica on /device:CPU:0\n"));
}

}  // namespace
}  // namespace cohort::testing
