// A training that is killed at any moment and started again ends with the same result as one that was not killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

class BackupChaosTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> Command(const std::string& dir, int save_every, int halt_at = -1) const {
    return {FIT_TASK, GetParam(), dir, StrCat(save_every), StrCat(halt_at)};
  }
  // Returns the line that a run prints at its end.
  static std::string End(LaunchedProgram& program) {
    EXPECT_EQ(program.Wait(), 0) << program.err();
    const std::string out = program.out();
    const size_t at = out.find("end ");
    return at == std::string::npos ? "no end: " + out : out.substr(at);
  }
  std::string Run(int save_every) const {
    LaunchedProgram program(Command(backup_dir, save_every));
    return End(program);
  }
  std::string Undisturbed() const {
    LaunchedProgram program(Command("", 0));
    return End(program);
  }
  void KillAt(int save_every, int batch) const {
    LaunchedProgram program(Command(backup_dir, save_every, batch));
    ASSERT_TRUE(program.WaitForText("halted")) << program.err();
    program.Signal(SIGKILL);
    EXPECT_EQ(program.Wait(), 128 + SIGKILL);
  }

  const TempFolder folder;
  const std::string backup_dir = folder / "backup";
};

// The training is killed in the first epoch, in the middle of an epoch, or after the last batch of one. It is saved
// after each batch, after several batches (so that some run twice), or after each epoch.
TEST_P(BackupChaosTest, KilledBetweenBatches) {
  const std::string expected = Undisturbed();
  ASSERT_THAT(expected, HasSubstr("loss"));
  for (const auto& [save_every, halt_at] : {std::pair(1, 3), {1, 7}, {3, 11}, {0, 16}}) {
    KillAt(save_every, halt_at);
    EXPECT_TRUE(FileExists(backup_dir + "/latest.weights.h5"));
    EXPECT_EQ(Run(save_every), expected) << "saved every " << save_every << ", killed at " << halt_at;
    EXPECT_FALSE(FileExists(backup_dir + "/latest.weights.h5")) << "it is deleted at the end";
  }
}

TEST_P(BackupChaosTest, KilledAgainAndAgain) {
  const std::string expected = Undisturbed();
  for (const int batches : {2, 5, 1, 4}) KillAt(1, batches);
  EXPECT_EQ(Run(1), expected);
}

// The training is killed at any moment, also while it writes a backup.
TEST_P(BackupChaosTest, KilledInFlight) {
  const std::string expected = Undisturbed();
  for (const int after : {1, 4, 9}) {
    LaunchedProgram program(Command(backup_dir, 1));
    ASSERT_TRUE(program.WaitForText(StrCat("batch ", after, "\n"))) << program.err();
    program.Signal(SIGKILL);
    program.Wait();
  }
  EXPECT_EQ(Run(1), expected);
}

// SIGTERM interrupts the training in its first batch, within an epoch, in the last batch of one, or in a validation (an
// epoch has 7 batches, or 5 of the dataset; a validation has 7). The backup is of that batch, also if it is made after
// each epoch only.
TEST_P(BackupChaosTest, SigtermSavesAndTheTrainingGoesOn) {
  for (const std::string surroundings : {"FIT_ALONE=1", "FIT_VALIDATES=1", "FIT_REPLICAS=2"}) {
    const auto command = [&](const std::string& dir, int save_every, int signal_at) {
      std::vector<std::string> words = Command(dir, save_every);
      words.insert(words.begin(), {"/usr/bin/env", surroundings});
      words.push_back(StrCat(signal_at));
      return words;
    };
    LaunchedProgram undisturbed(command("", 0, -1));
    const std::string expected = End(undisturbed);
    ASSERT_THAT(expected, HasSubstr("loss"));
    for (const auto& [save_every, signal_at] : {std::pair(0, 1), {0, 3}, {0, 7}, {0, 9}, {2, 14}, {1, 18}}) {
      const std::string what = StrCat(surroundings, ", saved every ", save_every, ", SIGTERM in ", signal_at);
      LaunchedProgram interrupted(command(backup_dir, save_every, signal_at));
      EXPECT_EQ(interrupted.Wait(), 0) << what << interrupted.err();
      EXPECT_THAT(interrupted.out(), HasSubstr("interrupted after ")) << what;
      EXPECT_THAT(interrupted.err(), HasSubstr("SIGTERM has interrupted the training")) << what;
      EXPECT_TRUE(FileExists(backup_dir + "/latest.weights.h5")) << what;
      LaunchedProgram rest(command(backup_dir, save_every, -1));
      EXPECT_EQ(End(rest), expected) << what;
      EXPECT_THAT(rest.err(), HasSubstr("training goes on from")) << what;
      EXPECT_FALSE(FileExists(backup_dir + "/latest.weights.h5")) << what;
    }
  }
}

// The epoch in which the signal comes is not counted as finished, and there is no validation of it.
TEST_P(BackupChaosTest, SigtermDoesNotFinishTheEpoch) {
  std::vector<std::string> command = Command(backup_dir, 0);
  command.insert(command.begin(), {"/usr/bin/env", "FIT_VALIDATES=1"});
  command.push_back("2");
  LaunchedProgram program(command);
  EXPECT_EQ(program.Wait(), 0) << program.err();
  EXPECT_EQ(program.out(), "batch 1\nbatch 2\ninterrupted after 2 steps\n");
}

INSTANTIATE_TEST_SUITE_P(Data, BackupChaosTest, ::testing::Values("tensors", "dataset", "files"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cohort::testing
