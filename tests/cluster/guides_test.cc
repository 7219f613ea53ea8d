// Runs the commands of guides 000 and 004 as they are typed there, each in the network of its host and in a folder of
// its own. A command's `python NAME.py` stands for our program; only variables of the environment are added. Further
// runs have flags that make them short, so that they can end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/example_output.h"
#include "tests/cluster/guide_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

// ---------------------------------------------------------------------------------------------------- guide-000

constexpr char kHost42[] = "192.168.100.42", kHost253[] = "192.168.100.253";

// The guide's three commands.
constexpr char kTypePs[] =
    "CUDA_VISIBLE_DEVICES='' python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=ps --task_index=0";
constexpr char kTypeWorker0[] =
    "CUDA_VISIBLE_DEVICES=0 python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=worker --task_index=0";
constexpr char kTypeWorker1[] =
    "CUDA_VISIBLE_DEVICES=0 python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=worker --task_index=1";

class Guide000Test : public GuideTest {
 protected:
  Guide000Test() : GuideTest({kHost42, kHost253}) {}

  LaunchedProgram& Distribute(const std::string& host, const std::string& command, const Words& variables,
                              const std::string& flags = "") {
    // With `exec`, signals reach the program and not the shell.
    return Type(host,
                Replaced(command, "python distribute.py", std::string("exec ") + LINEAR_REGRESSION_PROGRAM) + flags,
                variables);
  }
};

// The guide's run takes a million steps, so it is watched until both workers have printed lines.
TEST_F(Guide000Test, TheCommandsAsTyped) {
  Distribute(kHost42, kTypePs, insecure_);
  auto& chief = Distribute(kHost42, kTypeWorker0, insecure_);
  auto& worker = Distribute(kHost253, kTypeWorker1, insecure_);
  for (LaunchedProgram* program : {&chief, &worker}) {
    ASSERT_TRUE(program->WaitForText("step: ", 2)) << Output();
  }
  Interrupt();
  for (LaunchedProgram* program : {&chief, &worker}) {
    const Words lines = LinesWith(program->out(), "step: ");
    EXPECT_THAT(lines, Each(MatchesRegex("step: [0-9]+000, weight: -?[0-9]+\\.[0-9]{6}, biase: -?[0-9]+\\.[0-9]{6}, "
                                         "loss: [0-9]+\\.[0-9]{6}")));
  }
  EXPECT_TRUE(std::filesystem::is_directory(File(kHost42) + "/checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(File(kHost253) + "/checkpoint"));  // only the chief writes
}

TEST(GuideReadmeTest, ShowsTheCommandsThatAreTested) {
  const std::string text = FileText(std::string(GUIDES_FOLDER) + "/000_parameter_servers/README.md");
  for (const char* typed : {kTypePs, kTypeWorker0, kTypeWorker1}) {
    EXPECT_THAT(text, HasSubstr("\n" + Replaced(typed, "python distribute.py", "distribute") + "\n"));
  }
  EXPECT_THAT(text, HasSubstr("export COHORT_ALLOW_INSECURE=1"));
}

// The same commands with a larger learning rate and fewer steps.
TEST_F(Guide000Test, TrainingFindsWeight2AndBias10) {
  const std::string flags = " --learning_rate=0.01 --steps_to_validate=50 --max_steps=3000";
  auto& ps = Distribute(kHost42, kTypePs, insecure_, flags);
  auto& worker = Distribute(kHost253, kTypeWorker1, insecure_, flags);
  ASSERT_TRUE(worker.WaitForText("Waiting for model to be ready")) << Output();  // otherwise it may start too late
  auto& chief = Distribute(kHost42, kTypeWorker0, insecure_, flags);
  for (LaunchedProgram* program : {&ps, &chief, &worker}) EXPECT_EQ(program->Wait(), 0) << Output();
  std::vector<StepLine> lines = StepLines(chief.out());
  const std::vector<StepLine> others = StepLines(worker.out());
  lines.insert(lines.end(), others.begin(), others.end());
  ASSERT_GE(lines.size(), 2u) << Output();
  const auto by_step = [](const StepLine& a, const StepLine& b) { return a.step < b.step; };
  const StepLine first = *std::min_element(lines.begin(), lines.end(), by_step);
  const StepLine last = *std::max_element(lines.begin(), lines.end(), by_step);
  EXPECT_GT(std::abs(first.biase - 10), 0.5f);  // 50 to 100 steps of 0.01 leave a third of the distance or more
  EXPECT_NEAR(last.weight, 2, 0.2);
  EXPECT_NEAR(last.biase, 10, 0.2);
}

TEST_F(Guide000Test, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  auto& ps = Distribute(kHost42, kTypePs, {});
  EXPECT_EQ(ps.Wait(), 1);
  EXPECT_THAT(ps.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("got 192.168.100.42:2222"),
                              HasSubstr("COHORT_ALLOW_INSECURE=1 before its command, on this host, 192.168.100.42,"),
                              HasSubstr("~/.config/cohort/token"), HasSubstr("no certificates are needed")));
}

TEST(Guide000FlagsTest, TheDefaultsAreTheGuides) {
  LaunchedProgram help({LINEAR_REGRESSION_PROGRAM, "--help"});
  ASSERT_EQ(help.Wait(), 0);
  for (const char* flag : {"--learning_rate FLOAT=3e-05", "--steps_to_validate INT=1000", "--max_steps INT=1000000",
                           "--logdir TEXT=./checkpoint/", "--save_model_secs FLOAT=60", "--ps_hosts TEXT ",
                           "--worker_hosts TEXT ", "--job_name TEXT ", "--task_index INT "}) {
    EXPECT_THAT(help.out(), HasSubstr(flag));
  }
}

// Each host has made a token of its own.
TEST_F(Guide000Test, HostsWithDifferentTokensAreToldToShareOne) {
  const Words variables{"COHORT_ALLOW_INSECURE=1"};
  auto& ps = Distribute(kHost42, kTypePs, variables);
  ASSERT_TRUE(ps.WaitForText("Started server with target: grpc://192.168.100.42:2222")) << Output();
  auto& refused = Distribute(kHost253, kTypeWorker1, variables);
  EXPECT_EQ(refused.Wait(), 1) << Output();
  EXPECT_THAT(refused.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("192.168.100.42:2222"),
                                   HasSubstr("another job token"), HasSubstr("~/.config/cohort/token")));
  // What the message asks for is enough.
  const std::string token = "/.config/cohort/token";
  std::filesystem::copy_file(File(kHost42) + token, File(kHost253) + token,
                             std::filesystem::copy_options::overwrite_existing);
  auto& taken = Distribute(kHost253, kTypeWorker1, variables);
  EXPECT_TRUE(taken.WaitForText("Waiting for model to be ready")) << Output();
}

// ---------------------------------------------------------------------------------------------------- guide-004

constexpr char kHost2[] = "172.17.0.2", kHost3[] = "172.17.0.3";

// The guide's lines, with any numbers in them.
constexpr char kEpochLine[] =
    "[0-9]+/[0-9]+ \\[=+\\] - [0-9]+s [0-9]+m?s/step - loss: [0-9]+\\.[0-9]{4} - accuracy: "
    "[0-9]\\.[0-9]{4}(e[-+][0-9]+)? *";

class Guide004Test : public GuideTest {
 protected:
  Guide004Test() : GuideTest({kHost2, kHost3}) {}

  // Types the guide's command, such as "python baseline.py".
  LaunchedProgram& Python(const std::string& host, const std::string& program, const std::string& flags,
                          const Words& variables = {}) {
    Words all{"COHORT_PROGRESS=bar"};
    all.insert(all.end(), variables.begin(), variables.end());
    return Type(host, std::string("exec ") + GUIDE_004_FASHION_MNIST_PROGRAM + " --program=" + program + flags, all);
  }
  static void ExpectTheGuidesSummary(const std::string& out) {
    for (const char* line :
         {"Model: \"sequential\"", "Layer (type)                 Output Shape              Param #   ",
          "conv2d (Conv2D)              (None, 28, 28, 128)       1280      ",
          "separable_conv2d (SeparableC (None, 28, 28, 128)       17664     ",
          "max_pooling2d (MaxPooling2D) (None, 14, 14, 128)       0         ",
          "separable_conv2d_1 (Separabl (None, 14, 14, 256)       34176     ",
          "separable_conv2d_2 (Separabl (None, 14, 14, 256)       68096     ",
          "max_pooling2d_1 (MaxPooling2 (None, 7, 7, 256)         0         ",
          "separable_conv2d_3 (Separabl (None, 7, 7, 512)         133888    ",
          "separable_conv2d_4 (Separabl (None, 7, 7, 512)         267264    ",
          "max_pooling2d_2 (MaxPooling2 (None, 3, 3, 512)         0         ",
          "flatten (Flatten)            (None, 4608)              0         ",
          "dense (Dense)                (None, 512)               2359808   ",
          "dense_1 (Dense)              (None, 10)                5130      ", "Total params: 2,887,306",
          "Trainable params: 2,887,306", "Non-trainable params: 0"}) {
      EXPECT_THAT(out, HasSubstr(std::string(line) + "\n"));
    }
    EXPECT_THAT(LinesWith(out, "____"), Each(std::string(65, '_')));
    EXPECT_THAT(LinesWith(out, "===="), ::testing::Contains(std::string(65, '=')));
  }
  static void ExpectEpochs(const std::string& out, int epochs) {
    const std::string of = "/" + std::to_string(epochs);
    for (int i = 1; i <= epochs; ++i) EXPECT_THAT(out, HasSubstr("Epoch " + std::to_string(i) + of + "\n"));
    Words ends = LinesWith(out, "/step - loss: ");
    EXPECT_THAT(ends, AllOf(SizeIs(epochs), Each(MatchesRegex(kEpochLine)))) << out;
  }

  static constexpr char kShort[] = " --epochs=2 --steps_per_epoch=2 --batch_size=8 --max_images=64 --threads=1";
};

TEST_F(Guide004Test, Baseline) {
  auto& program = Python(kHost2, "baseline", kShort);
  ASSERT_EQ(program.Wait(), 0) << Output();
  EXPECT_THAT(program.out(),
              AllOf(ContainsRegex("the num of gpu [0-9]+\n"), ContainsRegex("the num of logical gpu [0-9]+\n")));
  ExpectTheGuidesSummary(program.out());
  ExpectEpochs(program.out(), 2);
  EXPECT_THAT(program.out(), Not(HasSubstr("val_")));  // no validation data
}

TEST_F(Guide004Test, SingleMachineMultiGpu) {
  auto& program = Python(kHost2, "single_machine_multi_gpu", std::string(kShort) + " --curves=curves.svg");
  ASSERT_EQ(program.Wait(), 0) << Output();
  ExpectTheGuidesSummary(program.out());
  // The guide asks for history['val_accuracy'], which is there if there is validation data.
  EXPECT_THAT(LinesWith(program.out(), "history:"),
              ::testing::ElementsAre("history: loss accuracy val_loss val_accuracy"));
  EXPECT_THAT(FileText(File(kHost2) + "/curves.svg"), AllOf(HasSubstr(">accuracy<"), HasSubstr(">validation<")));
  EXPECT_THAT(program.err(), HasSubstr("MirroredStrategy"));
}

// The first worker waits for the second, and they train together.
TEST_F(Guide004Test, TwoMachines) {
  auto& first = Python(kHost2, "two_machine_worker01", kShort, insecure_);
  ASSERT_TRUE(first.WaitForText("still waits for rank 1 (/job:worker/replica:0/task:1)")) << Output();
  const std::string channels = "Initialize channels for job worker -> {0 -> 172.17.0.2:12345, 1 -> 172.17.0.3:23456}";
  EXPECT_THAT(first.err(),
              AllOf(HasSubstr(channels), HasSubstr("Started server with target: grpc://172.17.0.2:12345")));
  EXPECT_THAT(first.out(), Not(HasSubstr("Epoch")));
  auto& second = Python(kHost3, "two_machine_worker02", kShort, insecure_);
  for (LaunchedProgram* program : {&first, &second}) {
    ASSERT_EQ(program->Wait(), 0) << Output();
    ExpectTheGuidesSummary(program->out());
  }
  EXPECT_THAT(second.err(), AllOf(HasSubstr(channels), HasSubstr("Started server with target: grpc://172.17.0.3:23456"),
                                  HasSubstr("AUTO sharding policy will apply DATA sharding policy")));
  ExpectEpochs(first.out(), 2);
}

TEST_F(Guide004Test, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  auto& program = Python(kHost3, "two_machine_worker02", kShort);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("got 172.17.0.3:23456"),
                                   HasSubstr("COHORT_ALLOW_INSECURE=1 before its command, on this host, 172.17.0.3,")));
}

// As typed, an epoch has 214 steps, so the run is watched until it trains.
TEST_F(Guide004Test, TwoMachinesAsTyped) {
  auto& first = Python(kHost2, "two_machine_worker01", "", insecure_);
  auto& second = Python(kHost3, "two_machine_worker02", "", insecure_);
  ASSERT_TRUE(second.WaitForText("Non-trainable params: 0")) << Output();
  ASSERT_TRUE(first.WaitForText("Epoch 1/10\n")) << Output();
  ASSERT_TRUE(first.WaitForText("/214 [")) << Output();
  Interrupt();
}

TEST_F(Guide004Test, SettingsAfterTheStrategyAreTheGuidesErrors) {
  for (const auto& [setting, message] : {std::pair{"visible", "Visible devices"}, {"growth", "Physical devices"}}) {
    auto& program = Python(kHost2, "two_machine_worker01", std::string(" --too_late=") + setting, insecure_);
    EXPECT_EQ(program.Wait(), 1) << Output();
    EXPECT_THAT(program.err(), AllOf(HasSubstr("Started server with target: grpc://172.17.0.2:12345"),
                                     HasSubstr(std::string(message) + " cannot be modified after being initialized")));
  }
}

// The guide's accuracy of 0.1 comes from Keras's fans of depthwise kernels, which the check of the signal names.
TEST_F(Guide004Test, KerasFansGiveTheGuidesResult) {
  auto& program = Python(kHost2, "baseline", std::string(kShort) + " --keras_fans");
  ASSERT_EQ(program.Wait(), 0) << Output();
  // ln 10, the loss of a guess. Few images have not all classes equally often, so the biases learn a little.
  EXPECT_NEAR(NumberBehind(program.out(), "loss: "), 2.3026, 0.05);
  EXPECT_THAT(program.err(), HasSubstr("depthwise"));
}

}  // namespace
}  // namespace cohort::testing
