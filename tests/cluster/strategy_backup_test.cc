// Tests BackupAndRestore of workers that train together. The workers are threads of this process. tests/chaos kills
// real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/distribute/worker_folder.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/registration.h"
#include "tests/cluster/strategy_cluster.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using keras::FitOptions;
using keras::TrainingCase;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StrategyCluster;

constexpr char kFile[] = "/latest.weights.h5";

class StrategyBackup : public ::testing::Test {
 protected:
  void SetUp() override { RegisterAll(); }

  // Returns the folder that all workers share, or the folder of one worker. The test does not make it.
  std::string Folder(int worker = -1) const { return folder_ / (worker < 0 ? "shared" : StrCat(worker)); }

  // The results of the workers. After `stop_after` batches an error stops all of them.
  struct Ends {
    std::vector<Status> outcomes;
    std::vector<std::vector<std::vector<float>>> weights;
    std::vector<double> losses;
  };
  Ends Train(const StrategyCluster& cluster, bool each_its_own = false, int stop_after = -1, bool backs_up = true) {
    const auto count = static_cast<size_t>(cluster.workers());
    Ends ends = {{}, std::vector<std::vector<std::vector<float>>>(count), std::vector<double>(count)};
    ends.outcomes = cluster.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
      TrainingCase one;
      one.optimizer = keras::Adam({.learning_rate = 0.01});
      one.normalized = true;
      const auto model = ModelOf(one, strategy);
      FitOptions fit = {.batch_size = 8, .epochs = 3, .verbose = 0};
      if (backs_up) {
        fit.callbacks.push_back(
            keras::BackupAndRestore({.backup_dir = Folder(each_its_own ? worker : -1), .save_every_batches = 1}));
      }
      int batches = 0;
      // The error comes before the next batch, because BackupAndRestore is called after all other callbacks of a batch.
      fit.callbacks.push_back(keras::LambdaCallback({.on_train_batch_begin = [&](int64_t) {
        if (batches++ != stop_after) return;
        strategy->meeting().Barrier();  // now the chief has written the file
        throw CancelledError("the test stops here");
      }}));
      const keras::History history = model->Fit(DataOf(one), fit);
      const auto place = static_cast<size_t>(worker);
      for (const Tensor& weight : model->GetWeights()) ends.weights[place].push_back(weight.ToVector<float>());
      ends.losses[place] = history["loss"].back();
    });
    return ends;
  }
  static void ExpectAll(const Ends& ends, Code code, const std::vector<std::string>& named = {}) {
    for (const Status& status : ends.outcomes) {
      EXPECT_EQ(status.code(), code) << status.ToString();
      for (const std::string& name : named) EXPECT_THAT(status.message(), HasSubstr(name));
    }
  }

  const testing::TempFolder folder_;
};

TEST_F(StrategyBackup, GoesOnAsIfNothingHadHappened) {
  for (const int replicas : {1, 2}) {
    const StrategyCluster cluster(2, replicas, "in_process");
    const Ends whole = Train(cluster, false, -1, /*backs_up=*/false);
    ExpectAll(whole, Code::kOk);
    for (const int stop_after : {1, 3, 5}) {
      ExpectAll(Train(cluster, false, stop_after), Code::kCancelled);
      EXPECT_TRUE(FileExists(Folder() + kFile));
      const Ends resumed = Train(cluster);
      ExpectAll(resumed, Code::kOk);
      EXPECT_EQ(resumed.weights, whole.weights) << "stopped after " << stop_after;
      EXPECT_EQ(resumed.losses, whole.losses);
      EXPECT_FALSE(FileExists(Folder() + kFile));
    }
  }
}

TEST_F(StrategyBackup, WorkersThatFindAnotherFileThanTheChiefAreNamed) {
  const StrategyCluster cluster(2, 1, "in_process");
  const std::string chiefs = Folder(0) + kFile, others = Folder(1) + kFile;
  ExpectAll(Train(cluster, /*each_its_own=*/true, 3), Code::kCancelled);
  ASSERT_TRUE(FileExists(chiefs));
  EXPECT_FALSE(FileExists(Folder(1))) << "the chief alone writes";
  ExpectAll(Train(cluster, true), Code::kInvalidArgument,
            {"find the chief's backup", kFile, "at worker 0 (/job:worker/replica:0/task:0", "bytes with checksum",
             "at worker 1 (/job:worker/replica:0/task:1", "backup: none"});
  fs::create_directories(Folder(1));
  fs::copy_file(Folder(0) + "/previous.weights.h5", others);
  ExpectAll(Train(cluster, true), Code::kInvalidArgument, {"find the chief's backup", "/task:1"});
  // The test now does what the message says.
  fs::copy_file(chiefs, others, fs::copy_options::overwrite_existing);
  ExpectAll(Train(cluster, true), Code::kOk);
  // It is an error, too, if the chief has no backup and others have one.
  EXPECT_FALSE(FileExists(chiefs));
  ASSERT_TRUE(FileExists(others));
  ExpectAll(Train(cluster, true), Code::kInvalidArgument, {"backup: none", "/task:1"});
}

TEST_F(StrategyBackup, AnotherNumberOfWorkersOrReplicasIsRefused) {
  const StrategyCluster two(2, 1, "in_process");
  ExpectAll(Train(two, false, 3), Code::kCancelled);
  const std::string was = "2 workers with 1 replicas each";
  ExpectAll(Train(StrategyCluster(3, 1, "in_process")), Code::kInvalidArgument,
            {"3 workers with 1 replicas each", was, kFile, "start as many again"});
  ExpectAll(Train(StrategyCluster(2, 2, "in_process")), Code::kInvalidArgument,
            {"2 workers with 2 replicas each", was});
  ExpectAll(Train(two), Code::kOk);
}

TEST_F(StrategyBackup, WorkerFoldersOfOthersThanTheChiefGoAway) {
  const StrategyCluster cluster(2, 1, "in_process");
  const std::string shared = Folder() + "/deep/own", of_other = shared + "/workertempdir_1";
  fs::create_directories(of_other);
  std::ofstream(of_other + "/left_by_a_killed_one") << "x";
  const auto outcomes = cluster.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    {
      const distribute::WorkerFolder mine(*strategy, shared);
      EXPECT_EQ(mine.path(), worker == 0 ? shared : of_other);
      EXPECT_FALSE(FileExists(mine.path() + "/left_by_a_killed_one"));
      std::ofstream(mine.path() + "/model.txt") << worker;
      strategy->meeting().Barrier();
      EXPECT_TRUE(FileExists(of_other + "/model.txt"));
      strategy->meeting().Barrier();
    }
    strategy->meeting().Barrier();
    EXPECT_FALSE(FileExists(of_other));
    EXPECT_EQ(ReadFile(shared + "/model.txt"), "0");
  });
  for (const Status& status : outcomes) EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace cohort
