#include "cohort/estimator/train_and_evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/estimator/file_lock.h"
#include "cohort/estimator/testing/small_model.h"
#include "cohort/registration.h"

namespace cohort::estimator {
namespace {

using cohort::testing::TempFolder;
using ::testing::HasSubstr;

class TrainAndEvaluateTest : public ::testing::Test {
 protected:
  TrainAndEvaluateTest() { RegisterAll(); }
  RunConfig Config(const std::string& tf_config = "") const {
    return {.model_dir = folder_.path(), .tf_config = tf_config};
  }
  static std::vector<Output> Serving(Graph& graph) {
    return {ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x")};
  }
  size_t Exports(const std::string& name) const {
    const std::filesystem::path dir = folder_ / ("export/" + name);
    if (!std::filesystem::exists(dir)) return 0;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir), {}));
  }
  const TempFolder folder_;
};

TEST_F(TrainAndEvaluateTest, LocallyItReturnsTheGuidesResults) {
  Estimator model(testing::LinearModel, Config());
  ::testing::internal::CaptureStderr();
  const auto result =
      TrainAndEvaluate(model, {.input_fn = testing::TrainingData}, {.input_fn = testing::EvaluationData});
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(result.has_value());
  EXPECT_FLOAT_EQ(static_cast<float>(result->first.at("loss")), 0.005215075f);
  EXPECT_EQ(result->first.at("global_step"), 3);
  EXPECT_TRUE(result->second.empty());
  for (const char* line :
       {"Not using Distribute Coordinator.", "Running training and evaluation locally (non-distributed).",
        "save_checkpoints_steps None or save_checkpoints_secs 600.", "Starting evaluation at ",
        "Restoring parameters from ", "Inference Time : ", "Finished evaluation at ",
        "Saving dict for global step 3: global_step = 3, loss = 0.005215075",
        "Saving 'checkpoint_path' summary for global step 3: "}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
}

TEST_F(TrainAndEvaluateTest, EvaluatesAfterCheckpointsAndExportsOnceAtTheEnd) {
  RunConfig config = Config();
  config.save_checkpoints_steps = 2;
  Estimator model(testing::LinearModel, config);
  const auto result =
      TrainAndEvaluate(model, {.input_fn = [] { return testing::TrainingData().Repeat(); }, .max_steps = 6},
                       {.input_fn = testing::EvaluationData,
                        .exporters = {std::make_shared<FinalExporter>("final", Serving),
                                      std::make_shared<LatestExporter>("latest", Serving, 2)},
                        .throttle = std::chrono::seconds(0)});
  EXPECT_EQ(result->first.at("global_step"), 6);
  EXPECT_EQ(result->second.size(), 2u);
  EXPECT_EQ(Exports("final"), 1u);
  EXPECT_EQ(Exports("latest"), 2u);  // of three evaluations, at 2, 4 and 6
}

// As after a process that was killed when it had saved the last step.
TEST_F(TrainAndEvaluateTest, ATrainingThatIsOverIsEvaluatedAndExportedOnce) {
  const InputFn endless = [] { return testing::TrainingData().Repeat(); };
  Estimator(testing::LinearModel, Config()).Train(endless, {.steps = 3});
  for (int times = 0; times < 2; ++times) {
    Estimator model(testing::LinearModel, Config());
    const auto result = TrainAndEvaluate(
        model, {.input_fn = endless, .max_steps = 3},
        {.input_fn = testing::EvaluationData, .exporters = {std::make_shared<FinalExporter>("final", Serving)}});
    EXPECT_FLOAT_EQ(static_cast<float>(result->first.at("loss")), 0.005215075f);
    EXPECT_EQ(result->second.size(), 1u);
    EXPECT_EQ(Exports("final"), 1u);
  }
}

TEST_F(TrainAndEvaluateTest, EvaluatesNoMoreOftenThanTheThrottleSays) {
  RunConfig config = Config();
  config.save_checkpoints_steps = 2;
  Estimator model(testing::LinearModel, config);
  ::testing::internal::CaptureStderr();
  const auto result =
      TrainAndEvaluate(model, {.input_fn = [] { return testing::TrainingData().Repeat(); }, .max_steps = 6},
                       {.input_fn = testing::EvaluationData,
                        .exporters = {std::make_shared<LatestExporter>("latest", Serving, 9)},
                        .throttle = std::chrono::hours(1)});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Skip the current checkpoint eval due to throttle secs (3600 secs)."));
  EXPECT_EQ(result->first.at("global_step"), 6);
  EXPECT_EQ(Exports("latest"), 2u);  // of the evaluations at 2 and at the end
}

TEST_F(TrainAndEvaluateTest, EndlessEvaluationDataIsNamedBeforeTheTraining) {
  Estimator model(testing::LinearModel, Config());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                TrainAndEvaluate(
                    model, {.input_fn = testing::TrainingData},
                    {.input_fn = [] { return testing::EvaluationData().Repeat(); }, .steps = std::nullopt});
              }),
              HasSubstr("EvalSpec::steps"));
  EXPECT_EQ(model.latest_checkpoint(), "");
}

// The chief keeps only the newest checkpoints, so it may delete one that is being evaluated.
TEST_F(TrainAndEvaluateTest, AnEvaluatorOutlivesADeletedCheckpoint) {
  const InputFn endless = [] { return testing::TrainingData().Repeat(); };
  Estimator(testing::LinearModel, Config()).Train(endless, {.steps = 3});
  int calls = 0;
  const InputFn deleting = [&] {
    if (++calls == 1) {
      for (const char* file : {"model.ckpt-3.index", "model.ckpt-3.data-00000-of-00001"}) RemoveFile(folder_ / file);
      Estimator(testing::LinearModel, Config()).Train(endless, {.max_steps = 6});
    }
    return testing::EvaluationData();
  };
  Estimator model(testing::LinearModel, Config(R"({"task": {"type": "evaluator", "index": 0}})"));
  ::testing::internal::CaptureStderr();
  const auto result = TrainAndEvaluate(model, {.input_fn = endless, .max_steps = 6},
                                       {.input_fn = deleting, .start_delay = std::chrono::seconds(0)});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the chief has deleted " + folder_.path()));
  EXPECT_EQ(result->first.at("global_step"), 6);
  EXPECT_EQ(calls, 2);
}

TEST_F(TrainAndEvaluateTest, ASecondEvaluatorIsNamed) {
  const FileLock first(folder_ / "evaluator.lock", "evaluator");
  Estimator model(testing::LinearModel, Config(R"({"task": {"type": "evaluator", "index": 0}})"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                TrainAndEvaluate(model, {.input_fn = testing::TrainingData}, {.input_fn = testing::EvaluationData});
              }),
              HasSubstr("one evaluator"));
}

// The evaluator of an earlier training may still export to the folder.
TEST_F(TrainAndEvaluateTest, ALocalRunLeavesTheExportsOfAnEvaluatorAlone) {
  const FileLock evaluator(folder_ / "evaluator.lock", "evaluator");
  CreateDirectories(folder_ / "export/final/temp-1");
  Estimator model(testing::LinearModel, Config());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] {
                TrainAndEvaluate(model, {.input_fn = testing::TrainingData},
                                 {.input_fn = testing::EvaluationData,
                                  .exporters = {std::make_shared<FinalExporter>("final", Serving)}});
              }),
              HasSubstr("one evaluator"));
  EXPECT_TRUE(FileExists(folder_ / "export/final/temp-1"));
}

// A folder in place of the file stands for a file system without locks.
TEST_F(TrainAndEvaluateTest, TheChiefWarnsOnlyIfItKnowsThatThereIsNoEvaluator) {
  const std::string chief = R"({"cluster": {"chief": ["localhost:1"]}, "task": {"type": "chief", "index": 0}})";
  for (const bool known : {true, false}) {
    if (!known) {
      RemoveFile(folder_ / "evaluator.lock");
      CreateDirectories(folder_ / "evaluator.lock");
    }
    Estimator model(testing::LinearModel, Config(chief));
    ::testing::internal::CaptureStderr();
    TrainAndEvaluate(model, {.input_fn = testing::TrainingData}, {.input_fn = testing::EvaluationData});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("no evaluator is running") != std::string::npos, known) << log;
  }
}

TEST_F(TrainAndEvaluateTest, AnEvaluatorEvaluatesTheLastCheckpointAndEnds) {
  const std::string evaluator = R"({"cluster": {"chief": ["localhost:1"]}, "task": {"type": "evaluator", "index": 0}})";
  const std::string chief = R"({"cluster": {"chief": ["localhost:1"]}, "task": {"type": "chief", "index": 0}})";
  auto evaluation = std::async(std::launch::async, [&] {
    Estimator model(testing::LinearModel, Config(evaluator));
    return TrainAndEvaluate(model, {.input_fn = testing::TrainingData},
                            {.input_fn = testing::EvaluationData,
                             .exporters = {std::make_shared<FinalExporter>("final", Serving)},
                             .start_delay = std::chrono::seconds(0),
                             .throttle = std::chrono::seconds(0)});
  });
  Estimator model(testing::LinearModel, Config(chief));
  EXPECT_FALSE(
      TrainAndEvaluate(model, {.input_fn = testing::TrainingData}, {.input_fn = testing::EvaluationData}).has_value());
  ASSERT_EQ(evaluation.wait_for(std::chrono::minutes(2)), std::future_status::ready);
  const auto result = evaluation.get();
  EXPECT_EQ(result->first.at("global_step"), 3);
  EXPECT_FLOAT_EQ(static_cast<float>(result->first.at("loss")), 0.005215075f);
  EXPECT_EQ(Exports("final"), 1u);
}

TEST_F(TrainAndEvaluateTest, BadSpecsAreNamed) {
  Estimator model(testing::LinearModel, Config());
  EXPECT_THROW(TrainAndEvaluate(model, {}, {.input_fn = testing::EvaluationData}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                TrainAndEvaluate(model, {.input_fn = testing::TrainingData},
                                 {.input_fn = testing::EvaluationData,
                                  .exporters = {std::make_shared<FinalExporter>("twice", Serving),
                                                std::make_shared<FinalExporter>("twice", Serving)}});
              }),
              HasSubstr("twice"));
}

TEST_F(TrainAndEvaluateTest, AnExporterThatThrowsEndsTheCallWithItsError) {
  struct Failing final : Exporter {
    std::string name() const override { return "failing"; }
    std::optional<std::string> Export(Estimator&, const std::string&, const std::string&, const EvalMetrics&,
                                      bool) override {
      throw ResourceExhaustedError("no room for the export");
    }
  };
  Estimator model(testing::LinearModel, Config());
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] {
                TrainAndEvaluate(model, {.input_fn = testing::TrainingData},
                                 {.input_fn = testing::EvaluationData, .exporters = {std::make_shared<Failing>()}});
              }),
              HasSubstr("no room"));
}

}  // namespace
}  // namespace cohort::estimator
