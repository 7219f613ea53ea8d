// TrainAndEvaluate as processes: chief, two workers, a parameter server and an evaluator. Tests kill and freeze each of
// them, while training runs and while the evaluator exports. They check what the others do and say, that the training
// ends at its last step, and that there is exactly one complete final export.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr auto kLongerThanSilence = std::chrono::seconds(6);  // the silence limit of a server is 4.5 s

class EstimatorChaosTest : public ::testing::Test {
 protected:
  EstimatorChaosTest() : cluster_({{"chief", 1}, {"worker", 2}, {"ps", 1}}, {ESTIMATOR_TASK}) { UseTestToken(); }

  Arguments Flags(const Arguments& more) const {
    Arguments flags{"--model_dir=" + folder_.path()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // The chief is the last one, so that the training cannot end before all others serve.
  void StartAll(const Arguments& more, bool with_evaluator = true) {
    const std::pair<const char*, int> others[] = {{"ps", 0}, {"worker", 0}, {"worker", 1}};
    for (const auto& [job, index] : others) cluster_.Start(job, index, Flags(more), surroundings_);
    for (const auto& [job, index] : others) {
      EXPECT_TRUE(cluster_.task(job, index).WaitForText("Started server with target")) << cluster_.Describe();
    }
    cluster_.Start("chief", 0, Flags(more), surroundings_);
    if (with_evaluator) cluster_.Start("evaluator", 0, Flags(more), surroundings_);
  }
  bool AllTrain(int steps = 5) {
    return cluster_.WaitForLines("chief", 0, "acked", steps) && cluster_.WaitForLines("worker", 0, "acked", steps) &&
           cluster_.WaitForLines("worker", 1, "acked", steps);
  }
  int Acked(const std::string& job, int index) { return cluster_.CountLines(job, index, "acked"); }
  // Returns how many updates of a task the newest checkpoint has: 0 is the chief, i + 1 is worker i.
  int64_t Applied(int64_t task) const {
    return BundleReader(LatestCheckpoint(folder_.path())).Read("counts").data<int64_t>()[task];
  }
  std::vector<std::string> ExportsOf(const std::string& exporter, const std::string& start = "") const {
    std::vector<std::string> found;
    const std::string dir = folder_ / ("export/" + exporter);
    if (!fs::exists(dir)) return found;
    for (const auto& entry : fs::directory_iterator(dir)) {
      if (entry.path().filename().string().starts_with(start)) found.push_back(entry.path());
    }
    return found;
  }
  // Checks that the final step is one cut of the training, was evaluated, and was exported once and completely.
  void CheckResult(int64_t max_steps) {
    const BundleReader last(LatestCheckpoint(folder_.path()));
    const int64_t step = last.Read("global_step").scalar<int64_t>();
    EXPECT_GE(step, max_steps);
    int64_t sum = 0;
    for (const int64_t count : last.Read("counts").ToVector<int64_t>()) sum += count;
    EXPECT_EQ(sum, step) << "the checkpoint is not one cut of the training";
    EXPECT_THAT(ReadFile(folder_ / "training_done"), ::testing::StartsWith(StrCat(step, " ")));
    EXPECT_THAT(cluster_.LastLine("evaluator", 0, "result"), ::testing::StartsWith(StrCat("result ", step, " ")))
        << cluster_.Describe();
    ASSERT_EQ(ExportsOf("final").size(), 1u) << cluster_.Describe();
    EXPECT_EQ(ExportsOf("final", "temp-").size(), 0u);
    const saved_model::SavedModel exported(ExportsOf("final").front());
    const float w = last.Read("w").scalar<float>();
    EXPECT_EQ(exported.Run({{"x", Tensor::Vector<float>({2})}}).at("y").ToVector<float>()[0], 2 * w);
  }
  void ExpectEnd(const std::string& job, int index, int code = 0) {
    EXPECT_EQ(cluster_.task(job, index).Wait(), code) << job << "/" << index << "\n" << cluster_.Describe();
  }
  void ExpectAllEnd() {
    for (const auto& [job, index] :
         {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}, {"evaluator", 0}}) {
      ExpectEnd(job, index);
    }
  }

  const TempFolder folder_;
  ProcessCluster cluster_;
  ProcessCluster::Surroundings surroundings_;
};

// The parameter says if the task is frozen for ever instead of killed.
class LostForEverTest : public EstimatorChaosTest, public ::testing::WithParamInterface<bool> {
 protected:
  void Lose(const std::string& job) {
    if (GetParam()) {
      cluster_.Freeze(job, 0);
    } else {
      cluster_.Kill(job, 0);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Estimator, LostForEverTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Frozen" : "Killed"; });

enum class Fault { kKillAndRestart, kFreezeAndThaw };
enum class Phase { kTraining, kExport };
struct Case {
  const char* job;
  Fault fault;
  Phase phase;
};
std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return StrCat(info.param.job, info.param.fault == Fault::kFreezeAndThaw ? "Frozen" : "Killed",
                info.param.phase == Phase::kExport ? "InExport" : "InTraining");
}
class EachRoleTest : public EstimatorChaosTest, public ::testing::WithParamInterface<Case> {};

// Whoever is killed and started again, or frozen for longer than the limit of silence, the training ends.
TEST_P(EachRoleTest, TrainingEnds) {
  const auto& [job, fault, phase] = GetParam();
  const bool frozen = fault == Fault::kFreezeAndThaw;
  // So many that the chief still trains when the evaluator makes its first export.
  const int64_t max_steps = frozen ? 1200 : phase == Phase::kExport ? 2400 : 600;
  const Arguments flags{StrCat("--max_steps=", max_steps), "--pause_ms=20", "--save_steps=50", "--exporter=latest",
                        "--export_ms=500"};
  StartAll(flags);
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  if (phase == Phase::kExport) {
    ASSERT_TRUE(cluster_.WaitForLines("evaluator", 0, "exporting latest", 1)) << cluster_.Describe();
  }
  ASSERT_TRUE(WatchedProcess(cluster_.task("chief", 0).pid()).running()) << "the training was over before the fault";
  const int index = std::string(job) == "worker" ? 1 : 0;
  int acked_before = 0;
  if (frozen) {
    cluster_.Freeze(job, index);
    std::this_thread::sleep_for(kLongerThanSilence);
    cluster_.Thaw(job, index);
  } else {
    cluster_.Kill(job, index);
    acked_before = Acked(job, index);
    cluster_.Start(job, index, Flags(flags));
  }
  ExpectAllEnd();
  CheckResult(max_steps);
  if (std::string(job) == "ps") return;  // steps may be lost
  // No acknowledged update is lost. A killed task may have made one that nobody has acknowledged to it.
  const int chief = Acked("chief", 0) + (std::string(job) == "chief" ? acked_before : 0);
  const int worker = Acked("worker", 1) + (std::string(job) == "worker" ? acked_before : 0);
  EXPECT_GE(Applied(0), chief) << cluster_.Describe();
  EXPECT_LE(Applied(0), chief + 1) << cluster_.Describe();
  EXPECT_GE(Applied(2), std::string(job) == "worker" ? acked_before : 0) << cluster_.Describe();
  EXPECT_LE(Applied(2), worker + 1) << cluster_.Describe();
}

INSTANTIATE_TEST_SUITE_P(
    Estimator, EachRoleTest,
    ::testing::Values(
        Case{"chief", Fault::kKillAndRestart, Phase::kTraining},
        Case{"worker", Fault::kKillAndRestart, Phase::kTraining}, Case{"ps", Fault::kKillAndRestart, Phase::kTraining},
        Case{"evaluator", Fault::kKillAndRestart, Phase::kTraining},
        Case{"chief", Fault::kFreezeAndThaw, Phase::kTraining}, Case{"worker", Fault::kFreezeAndThaw, Phase::kTraining},
        Case{"ps", Fault::kFreezeAndThaw, Phase::kTraining}, Case{"evaluator", Fault::kFreezeAndThaw, Phase::kTraining},
        Case{"chief", Fault::kKillAndRestart, Phase::kExport}, Case{"worker", Fault::kKillAndRestart, Phase::kExport},
        Case{"ps", Fault::kKillAndRestart, Phase::kExport}, Case{"evaluator", Fault::kKillAndRestart, Phase::kExport},
        Case{"chief", Fault::kFreezeAndThaw, Phase::kExport}, Case{"worker", Fault::kFreezeAndThaw, Phase::kExport},
        Case{"ps", Fault::kFreezeAndThaw, Phase::kExport}, Case{"evaluator", Fault::kFreezeAndThaw, Phase::kExport}),
    NameOf);

TEST_F(EstimatorChaosTest, AKilledWorkerLosesNoAcknowledgedUpdate) {
  StartAll({"--max_steps=300", "--pause_ms=20"});
  ASSERT_TRUE(AllTrain(20)) << cluster_.Describe();
  cluster_.Kill("worker", 1);
  const int acked = Acked("worker", 1);
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"ps", 0}, {"evaluator", 0}}) {
    ExpectEnd(job, index);
  }
  CheckResult(300);
  EXPECT_GE(Applied(2), acked);
  EXPECT_LE(Applied(2), acked + 1);
  EXPECT_THAT(cluster_.task("chief", 0).err(), ::testing::Not(HasSubstr("is not evaluated")));
}

TEST_F(EstimatorChaosTest, ARestartedChiefFindsItsTrainingOnTheServers) {
  StartAll({"--max_steps=600", "--pause_ms=20"});
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  cluster_.Kill("chief", 0);
  cluster_.Start("chief", 0, Flags({"--max_steps=600", "--pause_ms=20"}));
  ExpectAllEnd();
  CheckResult(600);
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr("nothing is restored, and no step is lost"));
}

TEST_F(EstimatorChaosTest, AfterALostServerTheLogSaysHowManyStepsAreLost) {
  const Arguments flags{"--max_steps=800", "--pause_ms=20", "--save_steps=200"};
  StartAll(flags);
  ASSERT_TRUE(cluster_.WaitForLines("chief", 0, "saved", 3)) << cluster_.Describe();
  ASSERT_TRUE(cluster_.WaitForLines("chief", 0, "acked", Acked("chief", 0) + 5)) << cluster_.Describe();
  cluster_.Kill("ps", 0);
  cluster_.Start("ps", 0, Flags(flags));
  ExpectAllEnd();
  CheckResult(800);
  EXPECT_THAT(cluster_.task("chief", 0).err(),
              AllOf(HasSubstr("a task was lost"), HasSubstr(ProcessCluster::FullName("ps", 0)),
                    ::testing::ContainsRegex("Training goes on at step [0-9]+ of .*model.ckpt-[0-9]+; at least [1-9]"
                                             "[0-9]* steps after it are lost: this task has seen step [0-9]+")));
  for (int w = 0; w < 2; ++w) {
    EXPECT_THAT(cluster_.task("worker", w).err(), HasSubstr(ProcessCluster::FullName("ps", 0)));
  }
}

// The global step is on ps/0, which lives. So the log has the exact number of lost steps.
TEST_F(EstimatorChaosTest, TheOtherServerKnowsHowManyStepsAreLost) {
  ProcessCluster two({{"chief", 1}, {"worker", 1}, {"ps", 2}}, {ESTIMATOR_TASK});
  const Arguments flags = Flags({"--max_steps=400", "--pause_ms=20", "--save_steps=100"});
  two.StartAll(flags);
  ASSERT_TRUE(two.WaitForLines("chief", 0, "saved", 2)) << two.Describe();
  ASSERT_TRUE(two.WaitForLines("chief", 0, "acked", two.CountLines("chief", 0, "acked") + 5)) << two.Describe();
  two.Kill("ps", 1);
  two.Start("ps", 1, flags);
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}}) {
    EXPECT_EQ(two.task(job, index).Wait(), 0) << two.Describe();
  }
  EXPECT_THAT(
      two.task("chief", 0).err(),
      AllOf(HasSubstr(ProcessCluster::FullName("ps", 1)),
            ::testing::ContainsRegex("Training goes on at step [0-9]+ of .*; [1-9][0-9]* steps after it are lost")));
  EXPECT_THAT(two.task("chief", 0).err(), HasSubstr("is not evaluated, and nothing is exported"));
}

TEST_P(LostForEverTest, TheServerIsNamedWithinTheLimit) {
  StartAll({"--patience_s=8"});
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  Lose("ps");
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}}) {
    ExpectEnd(job, index, 1);
    EXPECT_THAT(cluster_.task(job, index).err(),
                AllOf(HasSubstr("estimator_task: "), HasSubstr(ProcessCluster::FullName("ps", 0)),
                      HasSubstr(cluster_.address("ps", 0))));
  }
  ExpectEnd("evaluator", 0, 1);
  EXPECT_THAT(cluster_.task("evaluator", 0).err(),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("expected a new checkpoint in " + folder_.path())));
  EXPECT_EQ(ExportsOf("final").size(), 0u);
}

TEST_P(LostForEverTest, TheChiefIsNamedWithinTheLimit) {
  surroundings_.environment = {"COHORT_ORPHAN_TIMEOUT=3"};
  StartAll({"--patience_s=12"});
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  Lose("chief");
  ExpectEnd("ps", 0, 1);
  EXPECT_THAT(
      cluster_.task("ps", 0).err(),
      AllOf(HasSubstr("Unavailable"), HasSubstr(ProcessCluster::FullName("chief", 0)), HasSubstr("orphan timeout")));
  for (int w = 0; w < 2; ++w) {
    ExpectEnd("worker", w, 1);
    EXPECT_THAT(cluster_.task("worker", w).err(),
                AllOf(HasSubstr("estimator_task: "), AnyOf(HasSubstr(ProcessCluster::FullName("chief", 0)),
                                                           HasSubstr(ProcessCluster::FullName("ps", 0)))));
  }
  ExpectEnd("evaluator", 0, 1);
  EXPECT_THAT(cluster_.task("evaluator", 0).err(), HasSubstr("expected a new checkpoint in "));
}

TEST_F(EstimatorChaosTest, AnEvaluatorKilledInTheLastExportLeavesNoneAndTheNextOneMakesIt) {
  StartAll({"--max_steps=60", "--export_ms=600000"});
  ASSERT_TRUE(cluster_.WaitForLines("evaluator", 0, "exporting final", 1)) << cluster_.Describe();
  // The others do not depend on the evaluator.
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}}) {
    ExpectEnd(job, index);
  }
  cluster_.Kill("evaluator", 0);
  // There is only the temporary folder.
  EXPECT_EQ(ExportsOf("final", "temp-").size(), 1u);
  EXPECT_EQ(ExportsOf("final").size(), 1u);
  for (int times = 0; times < 2; ++times) {  // the second start finds everything done
    cluster_.Start("evaluator", 0, Flags({"--max_steps=60"}));
    ExpectEnd("evaluator", 0);
    CheckResult(60);
  }
}

TEST_F(EstimatorChaosTest, AnEvaluatorFrozenInTheLastExportMakesItLater) {
  StartAll({"--max_steps=60", "--export_ms=3000"});
  ASSERT_TRUE(cluster_.WaitForLines("evaluator", 0, "exporting final", 1)) << cluster_.Describe();
  cluster_.Freeze("evaluator", 0);
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}}) {
    ExpectEnd(job, index);
  }
  // A second evaluator is not a replacement while the first one lives.
  cluster_.Start("evaluator", 1, Flags({"--max_steps=60"}));
  ExpectEnd("evaluator", 1, 1);
  EXPECT_THAT(
      cluster_.task("evaluator", 1).err(),
      AllOf(HasSubstr("FailedPrecondition"), HasSubstr("expected one evaluator"), HasSubstr(folder_ / "evaluator.lock"),
            HasSubstr(StrCat("process ", cluster_.task("evaluator", 0).pid()))));
  cluster_.Thaw("evaluator", 0);
  ExpectEnd("evaluator", 0);
  CheckResult(60);
}

TEST_F(EstimatorChaosTest, ASecondChiefOfTheFolderIsNamed) {
  StartAll({}, /*with_evaluator=*/false);
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  ProcessCluster other({{"chief", 1}, {"ps", 1}}, {ESTIMATOR_TASK});
  other.Start("chief", 0, Flags({}));
  EXPECT_EQ(other.task("chief", 0).Wait(), 1) << other.Describe();
  EXPECT_THAT(other.task("chief", 0).err(),
              AllOf(HasSubstr("FailedPrecondition"), HasSubstr("expected one chief"), HasSubstr(folder_ / "chief.lock"),
                    HasSubstr(StrCat("process ", cluster_.task("chief", 0).pid()))));
  ASSERT_TRUE(AllTrain(Acked("chief", 0) + 5)) << "the first training goes on";
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr("no evaluator is running for " + folder_.path()));
}

TEST_F(EstimatorChaosTest, EndlessEvaluationDataWithoutStepsIsNamedAtOnce) {
  cluster_.Start("evaluator", 0, Flags({"--eval=endless"}));
  ExpectEnd("evaluator", 0, 1);
  EXPECT_THAT(cluster_.task("evaluator", 0).err(),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("EvalSpec::steps"), HasSubstr("endless")));
}

TEST_F(EstimatorChaosTest, AnExporterThatThrowsEndsTheEvaluatorOnly) {
  StartAll({"--max_steps=60", "--exporter=throws"});
  ExpectEnd("evaluator", 0, 1);
  EXPECT_THAT(cluster_.task("evaluator", 0).err(), HasSubstr("[failing exporter] no room for the export"));
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}}) {
    ExpectEnd(job, index);
  }
}

TEST_F(EstimatorChaosTest, AChiefThatSigtermStopsHasNotEndedTheTraining) {
  const Arguments flags{"--max_steps=600", "--pause_ms=20", "--save_steps=100000"};
  StartAll(flags);
  ASSERT_TRUE(AllTrain()) << cluster_.Describe();
  cluster_.task("chief", 0).Signal(SIGTERM);
  ExpectEnd("chief", 0);
  EXPECT_FALSE(FileExists(folder_ / "training_done")) << cluster_.Describe();
  EXPECT_LT(BundleReader(LatestCheckpoint(folder_.path())).Read("global_step").scalar<int64_t>(), 600);
  cluster_.Start("chief", 0, Flags(flags));
  ExpectAllEnd();
  CheckResult(600);
}

// The evaluation takes 2 batches, and the signal comes after the first one.
TEST_F(EstimatorChaosTest, AnEvaluatorThatSigtermStopsWritesNoResults) {
  StartAll({"--max_steps=60"}, /*with_evaluator=*/false);
  for (const auto& [job, index] : {std::pair{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}}) {
    ExpectEnd(job, index);
  }
  cluster_.Start("evaluator", 0, Flags({"--max_steps=60", "--eval_pause_ms=3000", "--exporter=latest"}));
  ASSERT_TRUE(cluster_.WaitForLines("evaluator", 0, "evaluated", 1)) << cluster_.Describe();
  cluster_.task("evaluator", 0).Signal(SIGTERM);
  ExpectEnd("evaluator", 0);
  EXPECT_EQ(cluster_.LastLine("evaluator", 0, "result"), "");
  EXPECT_EQ(cluster_.CountLines("evaluator", 0, "evaluated"), 1);
  EXPECT_THAT(cluster_.task("evaluator", 0).err(), ::testing::Not(HasSubstr("Saving dict for global step")));
  for (const char* missing : {"eval", "export/final", "export/latest", "evaluation_done"}) {
    EXPECT_FALSE(FileExists(folder_ / missing)) << missing;
  }
  cluster_.Start("evaluator", 0, Flags({"--max_steps=60"}));
  ExpectEnd("evaluator", 0);
  CheckResult(60);
}

// The signal comes while it trains, and while it evaluates. A second run goes on from the checkpoint.
TEST_F(EstimatorChaosTest, SigtermStopsALocalRunInGoodOrder) {
  for (const char* when : {"acked", "evaluated"}) {
    const TempFolder folder;
    const auto run = [&](int64_t max_steps, const Arguments& more) {
      Arguments command{ESTIMATOR_TASK, "--model_dir=" + folder.path(), StrCat("--max_steps=", max_steps)};
      command.insert(command.end(), more.begin(), more.end());
      return std::make_unique<LaunchedProgram>(command);
    };
    const auto first = run(100'000, {"--save_steps=40", "--pause_ms=20", "--eval_pause_ms=2000"});
    ASSERT_TRUE(first->WaitForText(StrCat("\n", when), 3)) << first->out() << first->err();
    first->Signal(SIGTERM);
    EXPECT_EQ(first->Wait(), 0) << first->err();
    const int64_t step = BundleReader(LatestCheckpoint(folder.path())).Read("global_step").scalar<int64_t>();
    EXPECT_THAT(first->err(), HasSubstr(StrCat("the training has stopped and saved step ", step)));
    EXPECT_FALSE(FileExists(folder / "export/final"));
    const auto second = run(step + 10, {});
    EXPECT_EQ(second->Wait(), 0) << second->err();
    EXPECT_THAT(second->out(), HasSubstr(StrCat("result ", step + 10, " 1")));
  }
}

// The tests may run as root, for whom permissions mean nothing. So the task sees a file system that is read-only.
TEST_F(EstimatorChaosTest, AFolderThatCannotBeWrittenIsNamed) {
  constexpr int kNoMounts = 77;
  const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  surroundings_.in_child = [&] {
    if (unshare(spaces) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_RDONLY, "size=1m") != 0) {
      _exit(kNoMounts);
    }
  };
  for (const char* job : {"chief", "evaluator"}) {
    cluster_.Start(job, 0, Flags({}), surroundings_);
    const int code = cluster_.task(job, 0).Wait();
    if (code == kNoMounts) GTEST_SKIP() << "this user may not mount a file system";
    EXPECT_EQ(code, 1) << cluster_.Describe();
    EXPECT_THAT(cluster_.task(job, 0).err(),
                AllOf(HasSubstr("PermissionDenied"), HasSubstr(folder_.path()), HasSubstr("Read-only file system")));
  }
}

TEST_F(EstimatorChaosTest, AFolderBelowAFileIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  cluster_.Start("chief", 0, {StrCat("--model_dir=", folder_ / "file", "/model")});
  ExpectEnd("chief", 0, 1);
  EXPECT_THAT(cluster_.task("chief", 0).err(), HasSubstr(folder_ / "file"));
}

}  // namespace
}  // namespace cohort::testing
