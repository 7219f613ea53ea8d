// Tests of the examples that run in one process: they learn, and say which images they have used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFirstLine[] = "training on generated images: neither --data_dir nor COHORT_DATA_DIR is given\n";

void WithoutDataDir() { unsetenv("COHORT_DATA_DIR"); }
void WithMissingDataDir() { setenv("COHORT_DATA_DIR", "/nonexistent", 1); }

TEST(LocalExamplesTest, ALayerOfOnesOwnTellsTwoSpiralsApart) {
  LaunchedProgram program({KERAS_CUSTOM_PROGRAM});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  // A straight line between the two spirals gets little more than half of the points right.
  EXPECT_GE(NumberBehind(program.out(), "test accuracy: "), 0.9) << program.out();
}

TEST(LocalExamplesTest, AFolderOfImagesTrainsAClassifier) {
  const TempFolder folder;
  const std::string images = folder / "images", model = "--model=" + folder / "images.keras";
  LaunchedProgram make({IMAGE_CLASSIFIER_PROGRAM, "--make_images=" + images, "--num_images=800"});
  ASSERT_EQ(make.Wait(), 0) << make.err();
  const std::vector<std::string> common = {IMAGE_CLASSIFIER_PROGRAM, "--data_dir=" + images, "--image_size=28", model};
  std::vector<std::string> train = common, classify = common;
  train.push_back("--epochs=4");
  LaunchedProgram training(train);
  ASSERT_EQ(training.Wait(), 0) << training.err();
  EXPECT_THAT(training.out(), HasSubstr("10 classes, 640 images to train and 160 to validate\n"));
  EXPECT_GE(NumberBehind(training.out(), "validation accuracy: "), 0.4) << training.out();
  const std::string file = std::filesystem::directory_iterator(images + "/class_3")->path();
  classify.push_back("--classify=" + file);
  LaunchedProgram classifying(classify);
  ASSERT_EQ(classifying.Wait(), 0) << classifying.err();
  EXPECT_THAT(classifying.out(), AllOf(HasSubstr(file + ": class_"), HasSubstr(" %)\n")));
}

TEST(LocalExamplesTest, GeneratedSentencesTrainAClassifier) {
  const TempFolder folder;
  const std::string model = "--model=" + folder / "texts.keras";
  LaunchedProgram training({TEXT_CLASSIFIER_PROGRAM, "--num_sentences=1000", "--epochs=8", model});
  ASSERT_EQ(training.Wait(), 0) << training.err();
  EXPECT_THAT(training.out(), StartsWith("training on generated sentences: no --data_dir is given\n"));
  const std::string last = training.out().substr(training.out().rfind('\n', training.out().size() - 2) + 1);
  EXPECT_THAT(last, AllOf(StartsWith("validation accuracy: "), HasSubstr(" (of generated sentences)\n")));
  EXPECT_GE(NumberBehind(last, "validation accuracy: "), 0.9) << training.out();

  const std::string good = "A brilliant film, see it!", bad = "What an awful, boring waste of time.";
  LaunchedProgram predicting({TEXT_CLASSIFIER_PROGRAM, "--no_train", model, "--predict=" + good + "|" + bad});
  ASSERT_EQ(predicting.Wait(), 0) << predicting.err();
  EXPECT_THAT(predicting.out(), AllOf(StartsWith(good + ": positive ("), HasSubstr("\n" + bad + ": negative (")));
}

TEST(LocalExamplesTest, AFolderOfTextsTrainsAClassifier) {
  const TempFolder folder;
  for (int i = 0; i < 100; ++i) {
    const std::string label = i % 2 == 0 ? "sea" : "land";
    std::filesystem::create_directories(folder / "texts/" + label);
    std::ofstream(folder / "texts/" + label + "/" + std::to_string(i) + ".txt")
        << (i % 2 == 0 ? "Waves, and a ship <br />" : "Hills, and a road <br />") << i % 7 << "\n";
  }
  LaunchedProgram program({TEXT_CLASSIFIER_PROGRAM, "--data_dir=" + folder / "texts",
                           "--model=" + folder / "texts.keras", "--batch_size=10", "--predict=A ship!|the road"});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), AllOf(StartsWith("2 classes, 80 texts to train and 20 to validate\n"),
                                   HasSubstr("A ship!: sea ("), HasSubstr("the road: land (")));
  EXPECT_GE(NumberBehind(program.out(), "validation accuracy: "), 0.95) << program.out();
}

TEST(LocalExamplesTest, APredictorServesSeveralThreads) {
  const TempFolder folder;
  const std::string path = folder / "model.keras";
  LaunchedProgram program({PREDICTOR_PROGRAM, path});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_TRUE(std::filesystem::is_regular_file(path)) << "the model was not written to " << path;
  EXPECT_THAT(program.out(), HasSubstr("model 'circle' takes 'point' [?,2]\n"));
  EXPECT_THAT(program.out(), HasSubstr("expected float32[?,2] for input 'point' of model 'circle'; got float32[2]"));
  // 500 requests of 1 to 16 points by each of 4 threads.
  EXPECT_EQ(NumberBehind(program.out(), "were served "), 4 * 4226) << program.out();
  // Half of the points are in each class.
  EXPECT_GE(NumberBehind(program.out(), "right: "), 0.9) << program.out();
}

std::string RunTowers(const std::vector<std::string>& flags, const std::function<void()>& in_child = nullptr) {
  std::vector<std::string> command{MULTI_DEVICE_TOWERS_PROGRAM};
  command.insert(command.end(), flags.begin(), flags.end());
  LaunchedProgram program(command, in_child);
  EXPECT_EQ(program.Wait(), 0) << program.err();
  return program.out();
}

TEST(MultiDeviceTowersTest, TowersOnDevicesOfTheirOwnMakeTheUpdatesOfOneLargerBatch) {
  // The guide has these before its commands.
  const auto hide_gpus = [] { setenv("CUDA_VISIBLE_DEVICES", "", 1); };
  const auto first_gpu = [] { setenv("CUDA_VISIBLE_DEVICES", "0", 1); };
  const std::string three = RunTowers({"--towers=3", "--batch_size=20"}, hide_gpus);
  const std::string one = RunTowers({"--towers=1", "--batch_size=60"}, first_gpu);
  EXPECT_THAT(three, AllOf(HasSubstr("tower 0 is on /device:CPU:1\n"), HasSubstr("tower 2 is on /device:CPU:3\n")));
  EXPECT_NEAR(NumberBehind(three, "weight: "), 2, 0.1) << three;
  EXPECT_NEAR(NumberBehind(three, "biase: "), 10, 0.1) << three;
  // Both see the same points. Only the order in which floats are added differs.
  EXPECT_NEAR(NumberBehind(three, "weight: "), NumberBehind(one, "weight: "), 1e-4);
  EXPECT_NEAR(NumberBehind(three, "biase: "), NumberBehind(one, "biase: "), 1e-4);
}

TEST(MultiDeviceTowersTest, TheTimelineShowsEachTowerOnItsDeviceAndTheUpdatesOnTheFirst) {
  const TempFolder folder;
  const std::string path = folder / "timeline.json";
  RunTowers({"--towers=2", "--steps=3", "--timeline=" + path});
  std::ifstream file(path);
  const auto timeline = nlohmann::json::parse(file);
  std::map<int, std::string> rows;
  std::map<std::string, std::set<std::string>> rows_of_op;
  for (const auto& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "M") rows[event.at("pid")] = event.at("args").at("name");
  }
  for (const auto& event : timeline.at("traceEvents")) {
    if (event.at("ph") == "X") rows_of_op[event.at("name")].insert(rows.at(event.at("pid")));
  }
  const std::string task = "/job:localhost/replica:0/task:0/device:CPU:";
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows_of_op["ResourceApplyGradientDescent"], (std::set<std::string>{task + "0"}));
  EXPECT_EQ(rows_of_op["Mean"], (std::set<std::string>{task + "1", task + "2"}));
}

struct TrainingEnd {
  double test_accuracy = 0, val_loss = 0;
};

// Trains the separable network for eight steps on generated images.
TrainingEnd TrainOnGenerated(const std::vector<std::string>& flags) {
  std::vector<std::string> command{FASHION_MNIST_PROGRAM, "--epochs=1", "--batch_size=32", "--max_images=256",
                                   "--verbose=2"};
  command.insert(command.end(), flags.begin(), flags.end());
  LaunchedProgram program(command, WithoutDataDir);
  EXPECT_EQ(program.Wait(), 0) << program.err();
  const std::string out = program.out();
  EXPECT_THAT(out, StartsWith(kFirstLine));
  EXPECT_THAT(program.err(), HasSubstr("taking GENERATED images"));
  const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
  EXPECT_THAT(last, AllOf(StartsWith("test accuracy: "), HasSubstr(" (of generated images)\n")));
  return {NumberBehind(last, "test accuracy: "), NumberBehind(out, " - val_loss: ")};
}

// Guessing gets 0.1 of 256 images right, with a standard deviation of 0.019, and has a loss of log(10). Replicas make
// the update of one device, so all trainings end with the loss of one device.
TEST(LocalExamplesTest, TheSeparableNetworkLearnsTheSameUnderEachStrategy) {
  const TrainingEnd one = TrainOnGenerated({});
  EXPECT_GE(one.test_accuracy, 0.2);
  EXPECT_LT(one.val_loss, std::log(10.0));
  for (const std::string strategy : {"mirrored", "central_storage"}) {
    const TrainingEnd replicated = TrainOnGenerated({"--strategy=" + strategy, "--num_replicas=2"});
    EXPECT_NEAR(replicated.val_loss, one.val_loss, 0.01 * one.val_loss) << strategy;
    EXPECT_NEAR(replicated.test_accuracy, one.test_accuracy, 0.02) << strategy;
  }
}

TEST(LocalExamplesTest, AFolderThatIsNotThereIsAnErrorInEveryExample) {
  for (const std::string program : {FASHION_MNIST_PROGRAM, MNIST_CLASSIFIER_PROGRAM}) {
    LaunchedProgram by_flag({program, "--data_dir=/nonexistent"}, WithoutDataDir);
    EXPECT_EQ(by_flag.Wait(), 1) << by_flag.out();
    EXPECT_THAT(by_flag.err(), AllOf(HasSubstr("NotFound"), HasSubstr("in /nonexistent;")));
    EXPECT_EQ(by_flag.out(), "");
    LaunchedProgram by_environment({program}, WithMissingDataDir);
    EXPECT_EQ(by_environment.Wait(), 1) << by_environment.out();
    EXPECT_THAT(by_environment.err(), HasSubstr("in /nonexistent/fashion-mnist;"));
  }
}

}  // namespace
}  // namespace cohort::testing
