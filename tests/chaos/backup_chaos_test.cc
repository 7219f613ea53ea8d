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

INSTANTIATE_TEST_SUITE_P(Data, BackupChaosTest, ::testing::Values("tensors", "dataset", "files"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cohort::testing
