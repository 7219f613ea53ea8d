// Runs the commands of guide 004 as they are typed there, each on the guide's address in the network of its host, and
// compares what they print with the guide's lines, in the guide's order. In the shell, `python` is a function that
// starts our program. Most runs have flags that make them short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/guide_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHost2[] = "172.17.0.2", kHost3[] = "172.17.0.3";

// The guide's commands, and what the README's reader types before them.
constexpr char kTypedBaseline[] = "python baseline.py";
constexpr char kTypedMultiGpu[] = "python single_machine_multi_gpu.py";
constexpr char kTypedWorker01[] = "python two_machine_worker01.py";
constexpr char kTypedWorker02[] = "python two_machine_worker02.py";
constexpr char kPythonOf004[] =
    R"(python() { local name=${1%.py}; shift; build/release/bin/guide_004_fashion_mnist --program=$name "$@"; })";

// The guide prints this with each of its programs, character by character.
std::string Table() {
  const std::string thin(65, '_'), thick(65, '=');
  std::string table = "Model: \"sequential\"\n" + thin +
                      "\nLayer (type)                 Output Shape              Param #   \n" + thick + "\n";
  const std::vector<std::string> rows = {"conv2d (Conv2D)              (None, 28, 28, 128)       1280      ",
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
                                         "dense_1 (Dense)              (None, 10)                5130      "};
  for (const std::string& row : rows) table += row + "\n" + (&row == &rows.back() ? thick : thin) + "\n";
  return table + "Total params: 2,887,306\nTrainable params: 2,887,306\nNon-trainable params: 0\n" + thin + "\n";
}

// The guide's log lines of a task. Time, level and component are in front of them here.
constexpr char kChannels[] =
    R"(Initialize GrpcChannelCache for job worker -> \{0 -> 172\.17\.0\.2:12345, 1 -> 172\.17\.0\.3:23456\})";
std::string StartedServer(const std::string& address) {
  return "Started server with target: grpc://" + address + "( .*)?";
}

class Guide004Test : public GuideTest {
 protected:
  Guide004Test() : GuideTest({kHost2, kHost3}) {}

  LaunchedProgram& TypeCommand(const std::string& host, const std::string& command, const std::string& flags,
                               const Words& variables = {}) {
    Words all{"COHORT_PROGRESS=bar"};
    all.insert(all.end(), variables.begin(), variables.end());
    return Type(host,
                PythonIs(kPythonOf004, "build/release/bin/guide_004_fashion_mnist", GUIDE_004_FASHION_MNIST_PROGRAM) +
                    command + flags,
                all);
  }
  // Expects the table, and then two epochs of `steps` steps.
  static void ExpectTheGuidesTraining(const std::string& out, int steps = 2) {
    EXPECT_THAT(out, HasSubstr(Table()));
    std::vector<std::string> epochs = {"Non-trainable params: 0"};
    for (int epoch = 1; epoch <= 2; ++epoch) {
      epochs.push_back(StrCat("Epoch ", epoch, "/2"));
      epochs.push_back(StrCat(steps, "/", steps, R"( \[={30}\] - \d+s \d+m?s/step - loss: \d+\.\d{4} - accuracy: )",
                              R"(\d\.\d{4}(e[-+]\d+)? *)"));
    }
    std::string text;
    for (const std::string& line : Lines(out)) text += line + "\n";
    ExpectLinesInOrder(text, epochs);
  }

  static constexpr char kShort[] = " --epochs=2 --steps_per_epoch=2 --batch_size=8 --max_images=64 --threads=1";
};

TEST(Guide004ReadmeTest, ShowsTheCommandsThatAreTested) {
  const std::string text = FileText(std::string(GUIDES_FOLDER) + "/004_fashion_mnist/README.md");
  for (const char* typed : {kTypedBaseline, kTypedMultiGpu, kTypedWorker01, kTypedWorker02, kPythonOf004}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + typed + "\n"));
  }
}

// The guide prints these, too. Each is in the README with the reason why it is not printed here.
TEST(Guide004ReadmeTest, GivesAReasonForEachLineThatDiffers) {
  const std::string text = FileText(std::string(GUIDES_FOLDER) + "/004_fashion_mnist/README.md");
  const size_t begin = text.find("### Differs"), end = text.find("\n## ", begin);
  ASSERT_LT(begin, end);
  const std::string differs = text.substr(begin, end - begin);
  for (const char* line :
       {"Created TensorFlow device", "In AUTO-mode, and switching to DATA-based sharding", "op: \"TensorSliceDataset\"",
        "Traceback (most recent call last)", "File \"two_machine_worker01.py\", line 30",
        "failed to create cublas handle", "Successfully opened dynamic library libcudnn.so.8",
        "Could not create cudnn handle", "Failed to get convolution algorithm", "3 root error(s) found",
        "[[node sequential/conv2d/Conv2D", "0 derived errors ignored", "Function call stack:"}) {
    EXPECT_THAT(differs, HasSubstr(line));
  }
}

TEST_F(Guide004Test, Baseline) {
  auto& program = TypeCommand(kHost2, kTypedBaseline, kShort);
  ASSERT_EQ(program.Wait(), 0) << Output();
  ExpectLinesInOrder(program.out(),
                     {"the num of gpu [0-9]+", "the num of logical gpu [0-9]+", "Model: \"sequential\""});
  ExpectTheGuidesTraining(program.out());
  EXPECT_THAT(program.out(), Not(HasSubstr("val_")));  // no validation data
}

TEST_F(Guide004Test, SingleMachineMultiGpu) {
  auto& program = TypeCommand(kHost2, kTypedMultiGpu, std::string(kShort) + " --curves=curves.svg");
  ASSERT_EQ(program.Wait(), 0) << Output();
  EXPECT_THAT(program.out(), HasSubstr(Table()));
  // The guide asks for history['val_accuracy'], which is there if there is validation data.
  EXPECT_THAT(LinesWith(program.out(), "history:"), ElementsAre("history: loss accuracy val_loss val_accuracy"));
  EXPECT_THAT(FileText(File(kHost2) + "/curves.svg"), AllOf(HasSubstr(">accuracy<"), HasSubstr(">validation<")));
  EXPECT_THAT(program.err(), HasSubstr("MirroredStrategy"));
}

TEST_F(Guide004Test, SingleMachineMultiGpuPrintsTheGuidesEpochs) {
  auto& program = TypeCommand(kHost2, kTypedMultiGpu, kShort);
  ASSERT_EQ(program.Wait(), 0) << Output();
  ExpectLinesInOrder(program.out(),
                     {"the num of gpu [0-9]+", "the num of logical gpu [0-9]+", "Model: \"sequential\""});
  ExpectTheGuidesTraining(program.out());
}

// The first worker waits for the second, and they train together. The guide shows what the second one prints.
TEST_F(Guide004Test, TwoMachines) {
  auto& first = TypeCommand(kHost2, kTypedWorker01, kShort, insecure_);
  ASSERT_TRUE(first.WaitForText("still waits for rank 1 (/job:worker/replica:0/task:1)")) << Output();
  EXPECT_THAT(first.out(), Not(HasSubstr("Epoch")));
  auto& second = TypeCommand(kHost3, kTypedWorker02, kShort, insecure_);
  for (auto& [program, address] : {std::pair(&first, "172\\.17\\.0\\.2:12345"), {&second, "172\\.17\\.0\\.3:23456"}}) {
    ASSERT_EQ(program->Wait(), 0) << Output();
    ExpectLinesInOrder(program->err(),
                       {kChannels, StartedServer(address), ".*AUTO sharding policy will apply DATA sharding policy.*"});
    ExpectTheGuidesTraining(program->out());
  }
}

// The README's way to try the two programs: no variable is needed.
TEST_F(Guide004Test, BothProgramsOnOneMachine) {
  const std::string flags = std::string(" --worker_hosts=127.0.0.1:12345,127.0.0.1:23456") + kShort;
  auto& first = TypeCommand(kHost2, kTypedWorker01, flags);
  auto& second = TypeCommand(kHost2, kTypedWorker02, flags);
  for (LaunchedProgram* program : {&first, &second}) {
    ASSERT_EQ(program->Wait(), 0) << Output();
    ExpectTheGuidesTraining(program->out());
  }
}

TEST_F(Guide004Test, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  auto& program = TypeCommand(kHost3, kTypedWorker02, kShort);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("got 172.17.0.3:23456"),
                                   HasSubstr("COHORT_ALLOW_INSECURE=1 before its command, on this host, 172.17.0.3,")));
}

// As typed, an epoch has 214 steps, so the run is watched until it trains.
TEST_F(Guide004Test, TwoMachinesAsTyped) {
  auto& first = TypeCommand(kHost2, kTypedWorker01, "", insecure_);
  auto& second = TypeCommand(kHost3, kTypedWorker02, "", insecure_);
  for (LaunchedProgram* program : {&first, &second}) {
    ASSERT_TRUE(program->WaitForText("Non-trainable params: 0")) << Output();
    ASSERT_TRUE(program->WaitForText("Epoch 1/10\n")) << Output();
    ASSERT_TRUE(program->WaitForText("/214 [")) << Output();
  }
  Interrupt();
}

TEST_F(Guide004Test, SettingsAfterTheStrategyAreTheGuidesErrors) {
  for (const auto& [setting, message] : {std::pair{"visible", "Visible devices"}, {"growth", "Physical devices"}}) {
    auto& program = TypeCommand(kHost2, kTypedWorker01, std::string(" --too_late=") + setting, insecure_);
    EXPECT_EQ(program.Wait(), 1) << Output();
    ExpectLinesInOrder(program.err(), {kChannels, StartedServer("172\\.17\\.0\\.2:12345"),
                                       StrCat(".*", message, " cannot be modified after being initialized.*")});
  }
}

// The guide's accuracy of 0.1 comes from Keras's fans of depthwise kernels, which the check of the signal names.
TEST_F(Guide004Test, KerasFansGiveTheGuidesResult) {
  auto& program = TypeCommand(kHost2, kTypedBaseline, std::string(kShort) + " --keras_fans");
  ASSERT_EQ(program.Wait(), 0) << Output();
  // ln 10, the loss of a guess. Few images have not all classes equally often, so the biases learn a little.
  EXPECT_NEAR(NumberBehind(program.out(), "loss: "), 2.3026, 0.05);
  EXPECT_THAT(program.err(), HasSubstr("depthwise"));
}

}  // namespace
}  // namespace cohort::testing
