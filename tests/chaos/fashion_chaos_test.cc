// `cohort launch --restart` runs examples/fashion_mnist with backups, and the tests kill its tasks again and again.
// Each process of a task writes its output to a file of its own, in which the progress bar shows the last batch. So a
// test sees from which step each process has gone on, and how far the one before it had come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <regex>
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
constexpr int kImages = 128;
constexpr int kBatch = 16;
constexpr int kEpochs = 16;
constexpr int64_t kSteps = kEpochs * (kImages / kBatch);

class FashionChaosTest : public ::testing::Test {
 protected:
  using FileTime = std::filesystem::file_time_type;
  // What one process of a task has printed so far.
  struct Life {
    int64_t first = 0;  // the step of the backup from which it has gone on; 0: it has begun anew
    int64_t last = 0;   // the step of the last batch that it has shown; 0: it has shown none
  };

  static void SetUpTestSuite() { RegisterAll(); }

  // A window of restarts that is shorter than their pauses keeps each pause at its first length, 0.1 s.
  std::vector<std::string> Command(const std::string& name, bool backs_up, int workers, int epochs) const {
    std::vector<std::string> words{COHORT_PROGRAM,
                                   "launch",
                                   StrCat("--workers=", workers),
                                   "--restart=100",
                                   "--restart_window=0.05",
                                   "--",
                                   "/bin/sh",
                                   "-c",
                                   "echo task $$; COHORT_PROGRESS=bar exec \"$@\" >\"$0$$\" 2>&1",
                                   folder_ / "printed.",
                                   FASHION_MNIST,
                                   StrCat("--max_images=", kImages),
                                   StrCat("--batch_size=", kBatch),
                                   StrCat("--epochs=", epochs),
                                   "--threads=1",
                                   "--logdir=" + folder_ / name};
    if (workers > 1) words.push_back("--strategy=multi_worker");
    if (backs_up) words.insert(words.end(), {"--backup_dir=" + backup_dir_, StrCat("--backup_freq=", kBackupFreq)});
    return words;
  }
  // The numbers of the processes that a worker has had, in order.
  static std::vector<pid_t> Processes(LaunchedProgram& program, int worker) {
    return NumbersAfter(program.out(), StrCat("[worker/", worker, "] task "));
  }
  // Returns what a process has printed.
  std::string Printed(pid_t pid) const {
    const std::string path = folder_ / StrCat("printed.", pid);
    return FileExists(path) ? ReadFile(path) : "";
  }
  Life LifeOf(pid_t pid) const {
    const std::string text = Printed(pid);
    Life life;
    std::smatch from;
    if (std::regex_search(text, from, std::regex("training goes on from step ([0-9]+) of '"))) {
      life.first = std::stoll(from[1]);
    }
    int64_t epoch = 0;
    const std::regex progress("Epoch ([0-9]+)/|\r *([0-9]+)/([0-9]+) \\[");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), progress); it != std::sregex_iterator(); ++it) {
      const std::smatch& found = *it;
      if (found[1].matched) {
        epoch = std::stoll(found[1]);
      } else {
        life.last = (epoch - 1) * std::stoll(found[3]) + std::stoll(found[2]);
      }
    }
    return life;
  }
  // Returns the output of the launcher and of the last process of each worker, for the message of a failing test.
  std::string Describe(LaunchedProgram& program, int workers = 1) const {
    std::string text = program.err();
    for (int worker = 0; worker < workers; ++worker) {
      const std::vector<pid_t> processes = Processes(program, worker);
      if (!processes.empty()) text += StrCat("\n--- worker ", worker, ":\n", Printed(processes.back()));
    }
    return text;
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
  // Returns when the newest backup was written, or nullopt if there is none at this moment, such as between two
  // renames.
  std::optional<FileTime> BackupTime() const {
    std::error_code error;
    const FileTime time = std::filesystem::last_write_time(latest_, error);
    return error ? std::nullopt : std::optional(time);
  }
  // Waits until `holds` returns true. Returns false if it does not in time.
  template <typename Condition>
  static bool Await(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  // Waits until the chief is another process than `before`, has shown a batch, has then made a backup, and has shown
  // `more` batches after that. Returns the process, or 0 if it does not do so in time.
  pid_t AwaitBackupAfter(pid_t before, int64_t more, LaunchedProgram& program) const {
    pid_t chief = before;
    const auto trains = [&] {
      const std::vector<pid_t> processes = Processes(program, 0);
      if (!processes.empty()) chief = processes.back();
      return chief != before && LifeOf(chief).last > 0;
    };
    if (!Await(trains)) return 0;
    const std::optional<FileTime> old = BackupTime();
    const auto made = [&] {
      const std::optional<FileTime> now = BackupTime();
      return now.has_value() && now != old;
    };
    if (!Await(made)) return 0;
    const int64_t goal = LifeOf(chief).last + more;
    return Await([&] { return LifeOf(chief).last >= goal; }) ? chief : 0;
  }
  // Kills a random worker at random moments, each at least one backup after the last one. Expects the end of an
  // undisturbed training, and that no process goes on from more than kBackupFreq steps before the last batch shown.
  void KillAtRandom(int kills, int workers) const;

  const TempFolder folder_;
  const std::string backup_dir_ = folder_ / "backup";
  const std::string latest_ = backup_dir_ + "/latest.weights.h5";
};

void FashionChaosTest::KillAtRandom(int kills, int workers) const {
  LaunchedProgram undisturbed(Command("undisturbed", false, workers, kEpochs));
  ASSERT_EQ(undisturbed.Wait(), 0) << Describe(undisturbed, workers);
  LaunchedProgram program(Command("killed", true, workers, kEpochs));
  std::mt19937 random(20261123);
  pid_t chief = 0;
  for (int done = 0; done < kills; ++done) {
    chief = AwaitBackupAfter(chief, random() % 5, program);
    ASSERT_GT(chief, 0) << done << " kills, then no backup: " << Describe(program, workers);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    const int victim = static_cast<int>(random() % static_cast<unsigned>(workers));
    ASSERT_EQ(kill(Processes(program, victim).back(), SIGKILL), 0) << "it has ended before the kill";
  }
  EXPECT_EQ(program.Wait(), 0) << Describe(program, workers);
  const std::vector<pid_t> chiefs = Processes(program, 0);
  EXPECT_GT(chiefs.size(), static_cast<size_t>(kills));
  int64_t last = 0;
  for (const pid_t process : chiefs) {
    const Life life = LifeOf(process);
    if (life.last == 0) continue;  // it has ended before its first batch, because another worker had been killed
    EXPECT_GE(life.first, last - kBackupFreq) << Printed(process);
    last = std::max(last, life.last);
  }
  EXPECT_EQ(last, kSteps);
  EXPECT_EQ(Weights("killed"), Weights("undisturbed"));
  EXPECT_FALSE(FileExists(latest_));
}

TEST_F(FashionChaosTest, KilledAtRandomItEndsWithTheWeightsOfAnUndisturbedRun) { KillAtRandom(18, 1); }

TEST_F(FashionChaosTest, EitherOfTwoWorkersIsKilledAtRandom) { KillAtRandom(18, 2); }

// SIGTERM to the launcher: the task saves after its step, and all leave with 0. The next launch goes on.
TEST_F(FashionChaosTest, SigtermToTheLauncherSavesAndTheNextLaunchGoesOn) {
  LaunchedProgram undisturbed(Command("undisturbed", false, 1, 4));
  ASSERT_EQ(undisturbed.Wait(), 0) << Describe(undisturbed);
  LaunchedProgram interrupted(Command("interrupted", true, 1, 4));
  ASSERT_TRUE(Await([&] { return BackupTime().has_value(); })) << Describe(interrupted);
  interrupted.Signal(SIGTERM);
  EXPECT_EQ(interrupted.Wait(), 0) << Describe(interrupted);
  EXPECT_THAT(Describe(interrupted), HasSubstr("SIGTERM has interrupted the training"));
  EXPECT_FALSE(FileExists(folder_ / "interrupted" + "/model.keras"));
  LaunchedProgram rest(Command("interrupted", true, 1, 4));
  EXPECT_EQ(rest.Wait(), 0) << Describe(rest);
  EXPECT_THAT(Describe(rest), HasSubstr("training goes on from step "));
  EXPECT_EQ(Weights("interrupted"), Weights("undisturbed"));
}

}  // namespace
}  // namespace cohort::testing
