// Workers that train together are killed at any moment, and all are started again. They end with the same result as
// workers that were not killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kWorkers = 3;

class StrategyBackupChaos : public ::testing::TestWithParam<std::string> {
 protected:
  explicit StrategyBackupChaos(const std::string& program = FIT_TASK) : cluster_({{"worker", kWorkers}}, {program}) {}
  void SetUp() override {
    UseTestToken();
    std::filesystem::create_directories(folder_ / "rows");
    // The workers get unequal parts: some have no examples left while others still have some.
    int line = 0;
    for (int file = 0; file < 5; ++file) {
      std::ofstream out(folder_ / StrCat("rows/", file, ".csv"));
      for (int i = 0; i < 6 + 2 * file; ++i, ++line) {
        for (int column = 0; column < 7; ++column)
          out << (line * 31 + column * 17) % 23 / 11.0 - 1 << ",\n"[column == 6];
      }
    }
  }

  std::string Backups() const { return folder_ / "backup"; }
  Arguments Command(const std::string& backup_dir, int save_every, int halt_at = -1) const {
    const std::string data = GetParam() == "csv" ? folder_ / "rows" : GetParam();
    return {data, backup_dir, StrCat(save_every), StrCat(halt_at)};
  }
  // Starts all workers. Returns the line that they print at their end, which is the same for each.
  std::string Run(const std::string& backup_dir, int save_every) {
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, Command(backup_dir, save_every), surroundings_);
    std::string end;
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(cluster_.task("worker", w).Wait(), 0) << cluster_.Describe();
      const std::string line = cluster_.LastLine("worker", w, "end ");
      if (w == 0) end = line;
      EXPECT_EQ(line, end) << cluster_.Describe();
    }
    return end;
  }
  std::string Undisturbed() {
    std::string end = Run("", 0);
    EXPECT_THAT(end, HasSubstr("loss"));
    return end;
  }
  void ExpectOthersEnd(int victim) {
    for (int w = 0; w < kWorkers; ++w) {
      if (w == victim) continue;
      EXPECT_EQ(cluster_.task("worker", w).Wait(), 1) << cluster_.Describe();
      EXPECT_THAT(cluster_.task("worker", w).err(), HasSubstr(ProcessCluster::FullName("worker", victim)));
    }
  }
  // The worker is killed after `batch` batches. The others wait for it in the next batch.
  void KillAt(int victim, int save_every, int batch) {
    for (int w = 0; w < kWorkers; ++w) {
      cluster_.Start("worker", w, Command(Backups(), save_every, w == victim ? batch : -1));
    }
    ASSERT_TRUE(cluster_.WaitForLines("worker", victim, "halted", 1)) << cluster_.Describe();
    cluster_.Kill("worker", victim);
    ExpectOthersEnd(victim);
  }

  const TempFolder folder_;
  ProcessCluster::Surroundings surroundings_;  // of all workers
  ProcessCluster cluster_;
};

// The training is saved after each batch, after several batches (so that some run twice), or after each epoch.
TEST_P(StrategyBackupChaos, AnyWorkerIsKilledBetweenBatches) {
  const std::string expected = Undisturbed();
  struct Case {
    int victim, save_every, batch;
  };
  for (const Case& one : {Case{1, 1, 3}, {0, 3, 11}, {2, 0, 16}}) {
    KillAt(one.victim, one.save_every, one.batch);
    ASSERT_TRUE(std::filesystem::exists(Backups() + "/latest.weights.h5"));
    EXPECT_EQ(Run(Backups(), one.save_every), expected)
        << "saved every " << one.save_every << ", killed worker " << one.victim << " at " << one.batch;
    EXPECT_TRUE(std::filesystem::is_empty(Backups())) << "it is deleted at the end";
  }
}

// The workers are killed at any moment, several times: the chief perhaps while it writes, and others while they send it
// their positions.
TEST_P(StrategyBackupChaos, KilledInFlight) {
  const std::string expected = Undisturbed();
  int after = 0;
  for (const int victim : {0, 2, 0, 1}) {
    for (int w = 0; w < kWorkers; ++w) cluster_.Start("worker", w, Command(Backups(), 1));
    ASSERT_TRUE(cluster_.task("worker", victim).WaitForText(StrCat("batch ", ++after, "\n"))) << cluster_.Describe();
    cluster_.Kill("worker", victim);
    ExpectOthersEnd(victim);
  }
  EXPECT_EQ(Run(Backups(), 1), expected);
  EXPECT_TRUE(std::filesystem::is_empty(Backups())) << "also what was half written";
}

// One worker gets SIGTERM in its first batch, within an epoch, or near the end of one. All stop after the same batch,
// save, and leave with 0.
TEST_P(StrategyBackupChaos, SigtermToOneWorkerInterruptsAll) {
  const std::string expected = Undisturbed();
  struct Case {
    int worker, save_every, batch;
  };
  for (const Case& one : {Case{1, 0, 1}, {0, 0, 4}, {2, 2, 6}}) {
    const std::string what = StrCat("worker ", one.worker, " in batch ", one.batch);
    for (int w = 0; w < kWorkers; ++w) {
      Arguments arguments = Command(Backups(), one.save_every);
      if (w == one.worker) arguments.push_back(StrCat(one.batch));
      cluster_.Start("worker", w, arguments);
    }
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(cluster_.task("worker", w).Wait(), 0) << what << cluster_.Describe();
      EXPECT_EQ(cluster_.LastLine("worker", w, "interrupted"), cluster_.LastLine("worker", 0, "interrupted"));
    }
    EXPECT_THAT(cluster_.LastLine("worker", 0, "interrupted"), HasSubstr(StrCat("after ", one.batch, " steps")))
        << what;
    ASSERT_TRUE(std::filesystem::exists(Backups() + "/latest.weights.h5")) << what;
    EXPECT_EQ(Run(Backups(), one.save_every), expected) << what;
  }
}

// Each worker has a fake card of its own, and they reduce by the fake NCCL (process_nccl.h).
class GpuBackupChaos : public StrategyBackupChaos {
 protected:
  GpuBackupChaos() : StrategyBackupChaos(FIT_TASK_ON_FAKE_CARDS) {
    // There are 112 steps, and so more collectives than the two workers make that are killed.
    surroundings_.environment = {StrCat("COHORT_FAKE_CARDS=", kWorkers), "FIT_OWN_GPU=1", "FIT_EPOCHS=16"};
  }
};

// A worker is inside of NCCL, where the others wait for it, when it is killed. New processes go on from the backup with
// a new identifier of NCCL.
TEST_P(GpuBackupChaos, AWorkerIsKilledInsideOfNccl) {
  const std::string expected = Undisturbed();
  EXPECT_THAT(cluster_.task("worker", 0).err(), HasSubstr(StrCat("connects ", kWorkers, " members")));
  for (const int victim : {1, 0}) {  // process 0 has the hub of the fake
    for (int w = 0; w < kWorkers; ++w) {
      ProcessCluster::Surroundings surroundings = surroundings_;
      if (w == victim) surroundings.environment.push_back("COHORT_FAKE_NCCL_FAULT=kernel:40");
      cluster_.Start("worker", w, Command(Backups(), 1), surroundings);
    }
    ASSERT_TRUE(cluster_.WaitForLines("worker", victim, "nccl hangs", 1)) << cluster_.Describe();
    EXPECT_GT(cluster_.CountLines("worker", victim, "batch "), 0) << cluster_.Describe();
    cluster_.Kill("worker", victim);
    ExpectOthersEnd(victim);
    ASSERT_TRUE(std::filesystem::exists(Backups() + "/latest.weights.h5"));
  }
  EXPECT_EQ(Run(Backups(), 1), expected);
  EXPECT_TRUE(std::filesystem::is_empty(Backups())) << "it is deleted at the end";
}

INSTANTIATE_TEST_SUITE_P(Data, GpuBackupChaos, ::testing::Values("tensors"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Data, StrategyBackupChaos, ::testing::Values("tensors", "dataset", "csv"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cohort::testing
