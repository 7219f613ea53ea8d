// Runs the programs of guide 004, fashion_mnist under each strategy, `cohort devices` and the demo on fake cards
// (fake_cards.cc): which devices they find, use and name, with two cards, with one, and without any: because a variable
// hides them, or because of the driver. If COHORT_TEST_CARD is 1 (./dev test gpu), the programs use the machine's
// cards, and tests that need more cards are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/needs_fake.h"
#include "cohort/cluster/port_reservation.h"
#include "cohort/core/testing/temp_folder.h"
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

// Returns the path of the program, which is in the folder of this test: the one with fake cards, or the real one.
std::string Program(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return folder / (cuda::TestsRunOnCard() ? name : name + "_on_fake_cards");
}

// Gives a program only the first `cards` cards: of fake ones, or of the machine.
Words CardVariables(int cards) {
  if (!cuda::TestsRunOnCard()) return {"COHORT_FAKE_CARDS=" + std::to_string(cards)};
  std::string visible;
  for (int i = 0; i < cards; ++i) visible += (i == 0 ? "" : ",") + std::to_string(i);
  return {"CUDA_VISIBLE_DEVICES=" + visible};
}

std::unique_ptr<LaunchedProgram> Start(const Words& command, const Words& flags, int cards) {
  Words words = {"/usr/bin/env"};
  for (const char* name : {"TF_CONFIG", "COHORT_BUILD_DIR", "COHORT_DATA_DIR", "CUDA_VISIBLE_DEVICES"})
    words.insert(words.end(), {"-u", name});
  for (const Words& more : {CardVariables(cards), command, flags}) words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<LaunchedProgram>(words);
}

// Returns the names of the machine's cards, or of two fake ones. Throws if there are none.
const Words& Cards() {
  static const Words cards = [] {
    if (!cuda::TestsRunOnCard()) return Words{"Fake Card", "Fake Card"};
    LaunchedProgram devices({Program("cohort"), "devices"});
    devices.Wait();
    Words names;
    for (const std::string& line : LinesWith(devices.out(), "/physical_device:GPU:")) {
      const size_t begin = line.find(": ") + 2;
      names.push_back(line.substr(begin, line.find(',') - begin));
    }
    if (names.empty()) {
      throw std::runtime_error("expected a card, because COHORT_TEST_CARD is 1; got only " + devices.out() +
                               devices.err());
    }
    return names;
  }();
  return cards;
}

// The first statement of a test of programs that have this many cards.
#define NEEDS_CARDS(count) \
  if (Cards().size() < (count)) GTEST_SKIP() << "the machine has " << Cards().size() << " card, and not " << (count)

// Returns "/device:GPU:0 (its name)". The programs print no names if the cards have different ones.
std::string Gpu(int number, int cards) {
  const std::string device = "/device:GPU:" + std::to_string(number);
  return cards == 2 && Cards()[0] != Cards()[1] ? device : device + " (" + Cards()[0] + ")";
}
std::string BothGpus(int cards) { return "2 replicas on " + Gpu(0, cards) + " and " + Gpu(1, cards); }

// Reads a file of the sources.
std::string SourceText(const std::string& path) { return FileText(std::string(SOURCE_FOLDER) + "/" + path); }

class Guide004OnGpusTest : public ::testing::Test {
 protected:
  // Runs one of the guide's programs and expects this exit code.
  void Run(const std::string& program, const Words& flags, int cards, int exit_code) {
    Words all = kShort;
    all.insert(all.end(), flags.begin(), flags.end());
    const auto run = Start({Program("guide_004_fashion_mnist"), "--program=" + program}, all, cards);
    EXPECT_EQ(run->Wait(), exit_code) << run->out() << run->err();
    out_ = run->out();
    err_ = run->err();
  }
  std::string out_, err_;
};

// The guide: list_physical_devices, set_visible_devices(gpus[1]), set_memory_growth for each, list_logical_devices.
TEST_F(Guide004OnGpusTest, BaselineUsesTheSecondCard) {
  NEEDS_CARDS(2u);
  Run("baseline", {}, 2, 0);
  EXPECT_THAT(out_, HasSubstr("the num of gpu 2\nthe num of logical gpu 1\n"));
  EXPECT_THAT(out_, AllOf(HasSubstr("Total params: 2,887,306"), HasSubstr("Epoch 2/2"), HasSubstr("accuracy: ")));
  EXPECT_THAT(err_, AllOf(HasSubstr("Created device /device:GPU:0"), HasSubstr("physical GPU (device: 1, name: "),
                          Not(HasSubstr("(device: 0, name: "))));
}

TEST_F(Guide004OnGpusTest, WithOneCardTheSecondOneIsAnErrorThatListsTheDevices) {
  NEEDS_CARDS(1u);
  Run("baseline", {"--visible_gpu=1"}, 1, 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("InvalidArgument"), HasSubstr("got 1; this machine has /physical_device:GPU:0")));
}

TEST_F(Guide004OnGpusTest, WithOneCardTheBaselineTrainsOnIt) {
  NEEDS_CARDS(1u);
  Run("baseline", {}, 1, 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("the num of gpu 1\nthe num of logical gpu 1\n"), HasSubstr("Epoch 2/2")));
  EXPECT_THAT(err_, HasSubstr("physical GPU (device: 0, name: "));
}

TEST_F(Guide004OnGpusTest, TwoCardsOfOneMachineAreMirrored) {
  NEEDS_CARDS(2u);
  Run("single_machine_multi_gpu", {}, 2, 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("the num of gpu 2\nthe num of logical gpu 2\n"), HasSubstr("Epoch 2/2")));
  EXPECT_THAT(err_, HasSubstr("Using MirroredStrategy with devices ('/device:GPU:0', '/device:GPU:1')"));
}

TEST_F(Guide004OnGpusTest, SettingsAfterTheStrategyAreTheGuidesErrors) {
  NEEDS_CARDS(2u);
  Run("baseline", {"--too_late=visible"}, 2, 1);
  EXPECT_THAT(err_, HasSubstr("Visible devices cannot be modified after being initialized"));
}

// Two machines with two GPUs each, of which the guide uses the first. The commands are those that the README shows, and
// `python` is the function that it defines.
class Guide004MachinesWithGpusTest : public GuideTest {
 protected:
  Guide004MachinesWithGpusTest() : GuideTest({"172.17.0.2", "172.17.0.3"}) {}
  void SetUp() override {
    COHORT_NEEDS_FAKE("the machines are networks of this one, so NCCL refuses their cards");
    GuideTest::SetUp();
  }
  LaunchedProgram& StartWorker(int index, const Words& flags = kShort) {
    const std::string readme = SourceText("examples/guides/004_fashion_mnist/README.md");
    const Words functions = LinesWith(readme, "python() {"), commands = LinesWith(readme, "python two_machine_worker");
    EXPECT_EQ(functions.size(), 1u) << "the README defines python";
    EXPECT_GE(commands.size(), 2u) << "the README has a command for each machine";
    std::string command =
        PythonIs(functions.at(0), "build/release/bin/guide_004_fashion_mnist", Program("guide_004_fashion_mnist")) +
        commands.at(static_cast<size_t>(index));
    for (const std::string& flag : flags) command += " " + flag;
    Words variables = insecure_;
    variables.push_back("COHORT_FAKE_CARDS=2");  // the programs of the guide take the first
    return Type(index == 0 ? "172.17.0.2" : "172.17.0.3", command, variables);
  }
};

TEST_F(Guide004MachinesWithGpusTest, TwoMachinesTrainTogether) {
  LaunchedProgram* const workers[] = {&StartWorker(0), &StartWorker(1)};
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
  LaunchedProgram* const workers[] = {&StartWorker(0, for_ever), &StartWorker(1, for_ever)};
  for (LaunchedProgram* worker : workers) ASSERT_TRUE(worker->WaitForText("Epoch 2/")) << Output();
  const size_t before = workers[0]->err().size();
  workers[1]->Signal(SIGKILL);
  EXPECT_EQ(workers[1]->Wait(), 128 + SIGKILL);
  EXPECT_EQ(workers[0]->Wait(), 1) << Output();
  EXPECT_THAT(workers[0]->err().substr(before), HasSubstr("/job:worker/replica:0/task:1"));
}

// The first part of guide 000: the parameters are on the CPU, and each GPU has a tower.
TEST(TowersTest, AreOnTheGpusIfThereAreAny) {
  NEEDS_CARDS(2u);
  for (const int cards : {0, 1, 2}) {
    const auto run = Start({Program("multi_device_towers")}, {"--towers=3", "--steps=200"}, cards);
    ASSERT_EQ(run->Wait(), 0) << run->err();
    for (int tower = 0; tower < 3; ++tower) {
      const std::string device =
          cards == 0 ? "CPU:" + std::to_string(tower + 1) : "GPU:" + std::to_string(tower % cards);
      EXPECT_THAT(run->out(), HasSubstr("tower " + std::to_string(tower) + " is on /device:" + device + "\n"));
    }
    EXPECT_THAT(run->out(), AllOf(HasSubstr("weight: 1.99"), HasSubstr("biase: 9.99"))) << cards;
  }
}

TEST(DevicesCommandTest, ListsTheCardsWithTheirNames) {
  NEEDS_CARDS(1u);
  const auto run = Start({Program("cohort"), "devices"}, {}, 1);
  EXPECT_EQ(run->Wait(), 0) << run->err();
  const Words lines = Lines(run->out());
  ASSERT_EQ(lines.size(), 2u) << run->out();
  EXPECT_EQ(lines[0].rfind("/physical_device:CPU:0", 0), 0u);
  EXPECT_EQ(lines[1].rfind("/physical_device:GPU:0: " + Cards()[0] + ", ", 0), 0u) << lines[1];
  EXPECT_THAT(lines[1], AllOf(HasSubstr(" MiB, compute capability ")));
}

TEST(DevicesCommandTest, HiddenCardsAreNotListed) {
  const auto run = Start({"CUDA_VISIBLE_DEVICES=", Program("cohort"), "devices"}, {}, 2);
  EXPECT_EQ(run->Wait(), 0) << run->err();
  EXPECT_EQ(Lines(run->out()).size(), 1u) << run->out();
}

#if !HAS_CUDA
// The program without fake cards.
TEST(DevicesCommandTest, AProgramThatIsBuiltWithoutCudaSaysSo) {
  const auto run = Start({std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cohort", "devices"}, {}, 1);
  EXPECT_EQ(run->Wait(), 0) << run->err();
  EXPECT_EQ(Lines(run->out()).size(), 1u) << run->out();
  EXPECT_THAT(run->err(), HasSubstr("no GPU is used, and all work is done on the CPU: this build has no CUDA"));
}
#endif

// What `cohort devices` lists and says of two cards, of which CUDA_VISIBLE_DEVICES wants some.
class VisibleDevicesTest : public ::testing::Test {
 protected:
  void List(const std::string& visible) {
    const auto run = Start({"CUDA_VISIBLE_DEVICES=" + visible, Program("cohort"), "devices"}, {}, 2);
    EXPECT_EQ(run->Wait(), 0) << run->err();
    gpus_ = LinesWith(run->out(), "/physical_device:GPU:").size();
    err_ = run->err();
  }
  size_t gpus_ = 0;
  std::string err_;
};

TEST_F(VisibleDevicesTest, AnIndexThatDoesNotExistHidesTheCardsBehindItAndIsNamed) {
  NEEDS_CARDS(1u);
  List("0,77,1");
  EXPECT_EQ(gpus_, 1u);
  EXPECT_THAT(err_, AllOf(HasSubstr("not all GPUs that were asked for are used"),
                          HasSubstr("expected CUDA_VISIBLE_DEVICES to list numbers or UUIDs of cards of this machine"),
                          HasSubstr("got '0,77,1', of whose 3 entries the driver takes the first 1"),
                          HasSubstr("no card '77'"), HasSubstr("nvidia-smi -L")));
}

TEST_F(VisibleDevicesTest, AValueWithoutAnyCardHidesAllAndIsNamed) {
  for (const std::string visible : {"77", "abc", " ,0"}) {
    List(visible);
    EXPECT_EQ(gpus_, 0u) << visible;
    EXPECT_THAT(err_,
                AllOf(HasSubstr("no GPU is used, and all work is done on the CPU"), HasSubstr("CUDA_VISIBLE_DEVICES"),
                      HasSubstr("'" + visible + "', "), Not(HasSubstr("is there twice"))));
  }
}

TEST_F(VisibleDevicesTest, ACardThatIsListedTwiceHidesAllAndIsNamed) {
  List("0,0");
  EXPECT_EQ(gpus_, 0u);
  EXPECT_THAT(err_, HasSubstr("got '0,0', of which the driver knows no card, because '0' is there twice"));
}

// The demo on one card: it lists the card, its workers use it, and its parameter servers do not.
TEST(DemoOnGpusTest, WorkersUseTheCards) {
  NEEDS_CARDS(1u);
  const TempFolder root;
  const std::filesystem::path bin = std::filesystem::path(root / "build/release/bin");
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(root / "examples");
  std::filesystem::copy(std::string(SOURCE_FOLDER) + "/examples/demo.sh", root / "examples/demo.sh");
  for (const char* name : {"cohort", "linear_regression", "mnist_classifier", "fashion_mnist"}) {
    std::filesystem::create_symlink(Program(name), bin / name);
  }
  const auto run = Start({"/bin/bash", root / "examples/demo.sh"}, {"--steps=8"}, 1);
  ASSERT_EQ(run->Wait(), 0) << run->out() << run->err();
  EXPECT_THAT(run->out(), HasSubstr("/physical_device:GPU:0: " + Cards()[0]));
  for (const char* part : {"linear_regression", "generated_images"}) {
    const std::string log = FileText(root / ("build/demo/" + std::string(part) + "/output.log"));
    EXPECT_THAT(log, HasSubstr("Created device /device:GPU:0")) << part;
    for (const std::string& line : LinesWith(log, "Created device /device:GPU:0")) {
      EXPECT_EQ(line.rfind("[worker/", 0), 0u) << line;
    }
  }
  EXPECT_THAT(run->out(),
              HasSubstr("MultiWorkerMirroredStrategy: 2 replicas on " + Gpu(0, 1) + " of each of 2 workers"));
}

// fashion_mnist prints its strategy, the devices of the replicas, and where the variables are.
std::string RunFashionMnist(const Words& flags, int cards) {
  Words all = {"--epochs=1", "--max_images=8", "--batch_size=4", "--threads=1", "--verbose=0"};
  all.insert(all.end(), flags.begin(), flags.end());
  const auto run = Start({Program("fashion_mnist")}, all, cards);
  EXPECT_EQ(run->Wait(), 0) << run->out() << run->err();
  EXPECT_THAT(run->out(), HasSubstr("test accuracy: "));
  return run->out();
}

TEST(FashionMnistOnGpusTest, OneDeviceIsTheFirstGpu) {
  NEEDS_CARDS(1u);
  EXPECT_THAT(RunFashionMnist({}, 1), HasSubstr("OneDeviceStrategy: 1 replica on " + Gpu(0, 1) + "\n"));
}

TEST(FashionMnistOnGpusTest, OneDeviceOfTwoIsTheFirstGpu) {
  NEEDS_CARDS(2u);
  EXPECT_THAT(RunFashionMnist({"--strategy=one_device"}, 2),
              HasSubstr("OneDeviceStrategy: 1 replica on " + Gpu(0, 2) + "\n"));
}

TEST(FashionMnistOnGpusTest, MirroredTakesAllGpus) {
  NEEDS_CARDS(2u);
  EXPECT_THAT(RunFashionMnist({"--strategy=mirrored"}, 2), HasSubstr("MirroredStrategy: " + BothGpus(2) + "\n"));
}

TEST(FashionMnistOnGpusTest, TwoReplicasShareOneCard) {
  NEEDS_CARDS(1u);
  EXPECT_THAT(RunFashionMnist({"--strategy=mirrored", "--num_replicas=2"}, 1),
              HasSubstr("MirroredStrategy: " + BothGpus(1) + "\n"));
}

TEST(FashionMnistOnGpusTest, CentralStorageKeepsTheParametersOnTheCpu) {
  NEEDS_CARDS(1u);
  EXPECT_THAT(RunFashionMnist({"--strategy=central_storage", "--num_replicas=2"}, 1),
              HasSubstr("CentralStorageStrategy: " + BothGpus(1) + ", variables on /device:CPU:0\n"));
}

TEST(FashionMnistOnGpusTest, CentralStorageTakesAllGpus) {
  NEEDS_CARDS(2u);
  EXPECT_THAT(RunFashionMnist({"--strategy=central_storage"}, 2),
              HasSubstr("CentralStorageStrategy: " + BothGpus(2) + ", variables on /device:CPU:0\n"));
}

TEST(FashionMnistOnGpusTest, AWorkerAloneMirrorsOnAllGpus) {
  NEEDS_CARDS(2u);
  EXPECT_THAT(RunFashionMnist({"--strategy=multi_worker"}, 2),
              HasSubstr("MultiWorkerMirroredStrategy: " + BothGpus(2) + "\n"));
}

// Two processes on one card reduce through pinned memory. Almost all of a short step is spent in a collective.
TEST(FashionMnistOnGpusTest, AWorkerThatIsKilledInACollectiveIsNamedByTheOneOnTheSameCard) {
  NEEDS_CARDS(1u);
  const PortReservation ports[2];
  std::unique_ptr<LaunchedProgram> workers[2];
  for (int i = 0; i < 2; ++i) {
    const std::string config = "TF_CONFIG={\"cluster\": {\"worker\": [\"" + ports[0].Address() + "\", \"" +
                               ports[1].Address() +
                               "\"]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(i) + "}}";
    workers[i] = Start({config, Program("fashion_mnist")},
                       {"--strategy=multi_worker", "--epochs=1000000", "--max_images=2", "--batch_size=2",
                        "--threads=1", "--verbose=2"},
                       1);
  }
  ASSERT_TRUE(workers[0]->WaitForText("Epoch 2/")) << workers[0]->err() << workers[1]->err();
  EXPECT_THAT(workers[0]->err(), AllOf(HasSubstr("Created device /device:GPU:0"), HasSubstr("which NCCL refuses")));
  const size_t before = workers[0]->err().size();
  workers[1]->Signal(SIGKILL);
  EXPECT_EQ(workers[1]->Wait(), 128 + SIGKILL);
  EXPECT_EQ(workers[0]->Wait(), 1) << workers[0]->out();
  EXPECT_THAT(workers[0]->err().substr(before), HasSubstr("/job:worker/replica:0/task:1"));
}

TEST(FashionMnistOnGpusTest, WithoutCardsItTrainsOnTheCpu) {
  EXPECT_THAT(RunFashionMnist({}, 0), HasSubstr("OneDeviceStrategy: 1 replica on /device:CPU:0\n"));
}

// A small program that counts in a variable, with two fake cards.
class CountOnCardsTest : public ::testing::Test {
 protected:
  void SetUp() override { COHORT_NEEDS_FAKE("the program has fake cards"); }
  void Run(const Words& variables, int exit_code = 0, const Words& more = {}) {
    Words command = variables;
    for (const std::string& word : {std::string(COUNT_ON_CARDS), folder_.path()}) command.push_back(word);
    const auto run = Start(command, more, 2);
    EXPECT_EQ(run->Wait(), exit_code) << run->out() << run->err();
    out_ = run->out();
    err_ = run->err();
  }
  // Expects that the program has done its work on the CPU, and that the log says why.
  void ExpectOnCpu(const std::string& why) const {
    EXPECT_THAT(out_, HasSubstr("counted to 40\n"));
    EXPECT_THAT(err_, AllOf(HasSubstr("no GPU is used, and all work is done on the CPU: " + why),
                            Not(HasSubstr("Created device"))));
  }
  const TempFolder folder_;
  std::string out_, err_;
};

TEST_F(CountOnCardsTest, WithoutADriverTheLogSaysWhyItWorksOnTheCpu) {
  Run({"COHORT_FAKE_DRIVER="});
  EXPECT_THAT(out_, HasSubstr("counted to 40\n"));
  EXPECT_THAT(err_, HasSubstr("no GPU is used: this machine has no NVIDIA driver\n"));
  Run({"COHORT_FAKE_DRIVER=", "COHORT_LOG_LEVEL=debug"});
  EXPECT_THAT(err_, HasSubstr("expected NVIDIA's driver 580 or later; got none: this machine has no "
                              "/proc/driver/nvidia/version; install it"));
}

TEST_F(CountOnCardsTest, WithAnOldDriverTheLogHasBothVersions) {
  Run({"COHORT_FAKE_DRIVER=535.104.05 12020"});
  ExpectOnCpu("expected NVIDIA's driver 580 or later, which has CUDA 13.0; got driver 535.104.05, which has CUDA 12.2");
}

TEST_F(CountOnCardsTest, WithAWrongVariableTheLogSaysWhyItWorksOnTheCpu) {
  Run({"CUDA_VISIBLE_DEVICES=second"});
  ExpectOnCpu(
      "expected CUDA_VISIBLE_DEVICES to list numbers or UUIDs of cards, with commas between them; got 'second'");
}

TEST_F(CountOnCardsTest, TheVariableThatTheProgramSetsBeforeItUsesDevicesCounts) {
  Run({"CUDA_VISIBLE_DEVICES=0,1"}, 0, {"1", "0,1"});
  EXPECT_EQ(out_, "'1': 1 GPUs\n'0,1': 1 GPUs\nbegins at 0\ncounted to 40\nalgorithm 1, recorded\n");
  EXPECT_THAT(err_, HasSubstr("Created device /device:GPU:0"));
}

TEST_F(CountOnCardsTest, TheProgramMayHideAllCards) {
  Run({}, 0, {"", "0"});
  EXPECT_THAT(out_, HasSubstr("'': 0 GPUs\n'0': 0 GPUs\n"));
  ExpectOnCpu("CUDA_VISIBLE_DEVICES is '', which hides all cards");
}

// A kernel uses a wrong address after some steps. The program ends with the error. New processes go on from the last
// checkpoint, on the CPU as well as on the card.
TEST_F(CountOnCardsTest, AfterAWrongAddressTheNextProcessGoesOnFromTheCheckpoint) {
  for (const char* next : {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=0"}) {
    std::filesystem::remove_all(folder_.path());
    Run({"COHORT_FAKE_FAULT=30"}, 1);
    EXPECT_EQ(out_, "begins at 0\n");
    EXPECT_THAT(err_, AllOf(HasSubstr("illegal memory access was encountered"), HasSubstr("on card 0"),
                            HasSubstr("start the program again, from its last checkpoint")));
    Run({next});
    EXPECT_THAT(out_, AllOf(HasSubstr("0\ncounted to 40\n"), Not(HasSubstr("begins at 0\n"))));
  }
}

// What the environment says about recorded steps and algorithms.
class SettingsOfTheEnvironmentTest : public CountOnCardsTest {
 protected:
  // Counts from 0, and returns the last line.
  std::string Count(const Words& variables) {
    std::filesystem::remove_all(folder_.path());
    Run(variables);
    EXPECT_THAT(out_, HasSubstr("begins at 0\n"));
    return Lines(out_).back();
  }
};

TEST_F(SettingsOfTheEnvironmentTest, StepsAreRecordedUnlessTheVariableIs0) {
  EXPECT_EQ(Count({}), "algorithm 1, recorded");
  EXPECT_EQ(Count({"COHORT_RECORD_STEPS=1"}), "algorithm 1, recorded");
  EXPECT_EQ(Count({"COHORT_RECORD_STEPS=0"}), "algorithm 1, launched");
}

// The second of the three algorithms is the fastest. Who reads the table takes it without a measurement.
TEST_F(SettingsOfTheEnvironmentTest, AutotuneWritesTheTableThatLaterProcessesRead) {
  const TempFolder tables;
  const std::string table = tables / "table.txt";
  EXPECT_EQ(Count({"COHORT_AUTOTUNE=1"}), "algorithm 2, recorded");
  EXPECT_EQ(Count({"COHORT_AUTOTUNE=0"}), "algorithm 1, recorded");
  EXPECT_EQ(Count({"COHORT_AUTOTUNE=1", "COHORT_AUTOTUNE_TABLE=" + table}), "algorithm 2, recorded");
  EXPECT_THAT(FileText(table), HasSubstr("Fake Card | "));
  EXPECT_EQ(Count({"COHORT_AUTOTUNE_TABLE=" + table}), "algorithm 2, recorded");
}

TEST_F(SettingsOfTheEnvironmentTest, WrongValuesAreNamed) {
  for (const std::string name : {"COHORT_RECORD_STEPS", "COHORT_AUTOTUNE"}) {
    Run({name + "=yes"}, 1);
    EXPECT_THAT(err_, HasSubstr("expected 1 or 0 in " + name + "; got 'yes'"));
  }
  const TempFolder tables;
  const std::string missing = tables / "missing.txt", wrong = tables / "wrong.txt";
  Run({"COHORT_AUTOTUNE_TABLE=" + missing}, 1);
  EXPECT_THAT(err_, HasSubstr(missing));
  std::ofstream(wrong) << "no table\n";
  Run({"COHORT_AUTOTUNE_TABLE=" + wrong}, 1);
  EXPECT_THAT(err_, AllOf(HasSubstr(wrong + ":1"), HasSubstr("cohort algorithms 1")));
}

// A program that says how much memory its GPUs may use, and fills them. Each of its two fake cards has 2048 MB.
class FillCardsTest : public ::testing::Test {
 protected:
  void SetUp() override { COHORT_NEEDS_FAKE("the program has fake cards"); }
  void Run(const Words& flags) {
    const auto run = Start({FILL_CARDS}, flags, 2);
    EXPECT_EQ(run->Wait(), 0) << run->out() << run->err();
    lines_ = Lines(run->out());
    err_ = run->err();
  }
  Words lines_;
  std::string err_;
};

TEST_F(FillCardsTest, LogicalGpusOfACardHaveTheirLimits) {
  Run({"64,96", "1", "0:40", "0:80", "1:80", "2:100"});
  ASSERT_EQ(lines_.size(), 8u);
  EXPECT_EQ(lines_[0], "40 MB of GPU:0: filled");
  EXPECT_THAT(lines_[2],
              AllOf(HasSubstr("80 MB of GPU:0: [cuda memory] expected 80 MB (83886080 bytes) more memory on GPU:0"),
                    HasSubstr("of its limit of 64 MB")));
  EXPECT_EQ(lines_[4], "80 MB of GPU:1: filled");
  EXPECT_EQ(lines_[6], "100 MB of GPU:2: filled");
  const std::string on_card = " MB memory -> physical GPU (device: ";
  EXPECT_THAT(err_, AllOf(HasSubstr("Created device /device:GPU:0 with 64" + on_card +
                                    "0, name: Fake Card, pci bus id: 0000:01:00.0, compute capability: 9.0)"),
                          HasSubstr("Created device /device:GPU:1 with 96" + on_card + "0, "),
                          HasSubstr("Created device /device:GPU:2 with 1792" + on_card +
                                    "1, name: Fake Card, pci bus id: 0000:02:00.0, compute capability: 9.0)")));
}

TEST_F(FillCardsTest, WithoutMemoryGrowthADeviceTakesAllAtOnce) {
  Run({"50", "0", "0:1"});
  EXPECT_EQ(lines_, (Words{"1 MB of GPU:0: filled", "1998 MB are left"}));
  Run({"50", "1", "0:1"});
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0], "1 MB of GPU:0: filled");
  EXPECT_GT(std::stoi(lines_[1]), 1998);
}

}  // namespace
}  // namespace cohort::testing
