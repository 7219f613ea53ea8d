// `cohort launch --restart` runs examples/fashion_mnist with backups, and the test kills it again and again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/keras/keras.h"
#include "cohort/registration.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kBackupFreq = 2;

class FashionChaosTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { RegisterAll(); }
  std::vector<std::string> Command(const std::string& name, bool backs_up) const {
    std::vector<std::string> words{COHORT_PROGRAM,
                                   "launch",
                                   "--workers=1",
                                   "--restart=100",
                                   "--",
                                   "/bin/sh",
                                   "-c",
                                   "echo task $$; exec \"$@\"",
                                   "sh",
                                   FASHION_MNIST,
                                   "--max_images=256",
                                   "--batch_size=16",
                                   "--epochs=6",
                                   "--verbose=2",
                                   "--threads=1",
                                   "--logdir=" + folder_ / name};
    if (backs_up) words.insert(words.end(), {"--backup_dir=" + backup_dir_, StrCat("--backup_freq=", kBackupFreq)});
    return words;
  }
  // The bytes of the model's weights, as the program has saved them at its end.
  std::vector<std::string> Weights(const std::string& name) const {
    keras::Model model = keras::LoadModel(folder_ / name + "/model.keras");
    std::vector<std::string> weights;
    for (const Tensor& weight : model.GetWeights()) {
      weights.emplace_back(static_cast<const char*>(weight.raw_data()), weight.bytes());
    }
    return weights;
  }
  // Returns "" if there is no backup at this moment, such as between two renames.
  std::string Backup() const {
    try {
      return FileExists(latest_) ? ReadFile(latest_) : "";
    } catch (const NotFoundError&) {
      return "";
    }
  }

  const TempFolder folder_;
  const std::string backup_dir_ = folder_ / "backup";
  const std::string latest_ = backup_dir_ + "/latest.weights.h5";
};

// The moments are of a seeded generator. In each life at least one backup is made, so that the training comes to its
// end.
TEST_F(FashionChaosTest, KilledAtRandomItEndsWithTheWeightsOfAnUndisturbedRun) {
  LaunchedProgram undisturbed(Command("undisturbed", false));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.err();
  LaunchedProgram program(Command("killed", true));
  std::mt19937 random(20261123);
  constexpr int kKills = 5;
  for (int kills = 1; kills <= kKills; ++kills) {
    ASSERT_TRUE(program.WaitForText("task ", kills)) << program.err();
    const std::string before = Backup();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (Backup() == before && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ASSERT_NE(Backup(), before) << program.err();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    kill(NumbersAfter(program.out(), "task ").back(), SIGKILL);
    ASSERT_TRUE(program.WaitForText("starting it again", kills)) << "it has ended before: " << program.err();
  }
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.err(), HasSubstr("training goes on from"));
  EXPECT_EQ(Weights("killed"), Weights("undisturbed"));
  EXPECT_FALSE(FileExists(latest_));
}

// SIGTERM to the launcher: the task saves after its step, and all leave with 0. The next launch goes on.
TEST_F(FashionChaosTest, SigtermToTheLauncherSavesAndTheNextLaunchGoesOn) {
  LaunchedProgram undisturbed(Command("undisturbed", false));
  ASSERT_EQ(undisturbed.Wait(), 0) << undisturbed.err();
  LaunchedProgram interrupted(Command("interrupted", true));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (Backup().empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  interrupted.Signal(SIGTERM);
  EXPECT_EQ(interrupted.Wait(), 0) << interrupted.err();
  EXPECT_THAT(interrupted.err(), HasSubstr("SIGTERM has interrupted the training"));
  EXPECT_FALSE(FileExists(folder_ / "interrupted" + "/model.keras"));
  LaunchedProgram rest(Command("interrupted", true));
  EXPECT_EQ(rest.Wait(), 0) << rest.err();
  EXPECT_THAT(rest.err(), HasSubstr("training goes on from"));
  EXPECT_EQ(Weights("interrupted"), Weights("undisturbed"));
}

}  // namespace
}  // namespace cohort::testing
