#include "cohort/estimator/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/estimator/testing/small_model.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"

namespace cohort::estimator {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EstimatorTest : public ::testing::Test {
 protected:
  EstimatorTest() { RegisterAll(); }
  Estimator Make(ModelFn model_fn = testing::LinearModel) const {
    return Estimator(std::move(model_fn), {.model_dir = folder_.path(), .tf_config = ""});
  }
  const TempFolder folder_;
};

TEST_F(EstimatorTest, TrainsEvaluatesAndPredictsWithTheGuidesNumbers) {
  Estimator model = Make();
  ::testing::internal::CaptureStderr();
  model.Train(testing::TrainingData);
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* line :
       {"Calling model_fn.", "Done calling model_fn.", "Create CheckpointSaverHook.", "Graph was finalized.",
        "Running local_init_op.", "Done running local_init_op.",
        "Calling checkpoint listeners before saving checkpoint 0...",
        "Calling checkpoint listeners after saving checkpoint 0...", "loss = 0.038075272, step = 0",
        "Calling checkpoint listeners before saving checkpoint 3...", "Loss for final step: 0.061832994."}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
  EXPECT_EQ(model.latest_checkpoint(), folder_.path() + "/model.ckpt-3");
  const EvalMetrics metrics = model.Evaluate(testing::EvaluationData);
  EXPECT_FLOAT_EQ(static_cast<float>(metrics.at("loss")), 0.005215075f);
  EXPECT_FLOAT_EQ(static_cast<float>(metrics.at("mse")), 0.005215075f);
  EXPECT_EQ(metrics.at("global_step"), 3);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "eval"));
  const std::vector<Prediction> predictions = model.Predict(testing::EvaluationData);
  ASSERT_EQ(predictions.size(), 3u);
  const Tensor kernel = model.GetVariableValue("dense/kernel");
  const float bias = model.GetVariableValue("dense/bias").ToVector<float>()[0];
  EXPECT_EQ(predictions[1].at("logits").shape(), Shape{1});
  EXPECT_NEAR(predictions[1].at("logits").ToVector<float>()[0],
              5 * kernel.ToVector<float>()[0] + 5.5f * kernel.ToVector<float>()[1] + bias, 1e-5);
  EXPECT_THAT(model.GetVariableNames(), ::testing::Contains("dense/kernel/Adagrad"));
}

TEST_F(EstimatorTest, AWarmStartBeginsWithAnotherModelsValues) {
  Make().Train(testing::TrainingData);
  const Tensor trained = Make().GetVariableValue("dense/kernel");
  const TempFolder second;
  const auto frozen = [](const ModelFnArgs& args) {
    EstimatorSpec spec = testing::LinearModel(args);
    if (args.mode == ModeKeys::kTrain) spec.train_op = ops::GetGlobalStep(args.graph)->AssignAdd(1);
    return spec;
  };
  Estimator warm(frozen, {.model_dir = second.path(), .tf_config = ""},
                 WarmStartSettings{.ckpt_to_initialize_from = folder_.path(), .vars_to_warm_start = "dense/k"});
  warm.Train(testing::TrainingData, {.steps = 1});
  EXPECT_EQ(warm.GetVariableValue("dense/kernel").ToVector<float>(), trained.ToVector<float>());
  EXPECT_EQ(warm.GetVariableValue("dense/bias").ToVector<float>()[0], 0.0f);
  EXPECT_EQ(warm.GetVariableValue("global_step").scalar<int64_t>(), 1);
  std::filesystem::remove_all(folder_.path());
  warm.Train(testing::TrainingData, {.steps = 1});  // goes on with its own checkpoint
  EXPECT_EQ(warm.GetVariableValue("global_step").scalar<int64_t>(), 2);
}

TEST_F(EstimatorTest, FeaturesHaveNames) {
  const auto model_fn = [](const ModelFnArgs& args) {
    const Output sum = args.feature("a") - args.feature("b");
    return EstimatorSpec{.mode = args.mode, .predictions = {{"sum", sum}}};
  };
  const auto data = [] {
    return data::Dataset::FromTensorSlices({Tensor::Vector<float>({5, 7}), Tensor::Vector<float>({1, 2})}).Batch(2);
  };
  Estimator model = Make(model_fn);
  const std::vector<Prediction> sums = model.Predict([&] { return Input(data(), {"a", "b"}); });
  EXPECT_EQ(sums.at(1).at("sum").scalar<float>(), 5.0f);
  EXPECT_THAT(MessageOf<NotFoundError>([&] { model.Predict([&] {
                                               return Input(data(), {"a", "c"});
                                             }); }),
              AllOf(HasSubstr("'b'"), HasSubstr("[a, c]")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Predict([&] {
                                                      return Input(data(), {"a", "b", "c"});
                                                    }); }),
              HasSubstr("2 features"));
  const auto with_labels = [] {
    const Tensor numbers = Tensor::Vector<float>({4, 5});
    return Input(data::Dataset::FromTensorSlices({numbers, Tensor::Vector<float>({1, 1}), numbers}).Batch(2),
                 {"a", "b"});
  };
  EXPECT_EQ(model.Predict(with_labels).at(1).at("sum").scalar<float>(), 4.0f);
}

TEST_F(EstimatorTest, StepsAddUpAndMaxStepsDoNot) {
  Estimator model = Make();
  const InputFn endless = [] { return testing::TrainingData().Repeat(); };
  model.Train(endless, {.steps = 4});
  EXPECT_EQ(model.GetVariableValue("global_step").scalar<int64_t>(), 4);
  model.Train(endless, {.steps = 4});
  EXPECT_EQ(model.GetVariableValue("global_step").scalar<int64_t>(), 8);
  ::testing::internal::CaptureStderr();
  model.Train(endless, {.max_steps = 8});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Skipping training since max_steps has already saved."));
  model.Train(endless, {.max_steps = 10});
  EXPECT_EQ(model.GetVariableValue("global_step").scalar<int64_t>(), 10);
}

TEST_F(EstimatorTest, SpecsThatLackSomethingAreNamed) {
  const auto train_with = [this](const std::function<void(EstimatorSpec&)>& spoil) {
    return MessageOf<InvalidArgumentError>([&] {
      Make([&](const ModelFnArgs& args) {
        EstimatorSpec spec = testing::LinearModel(args);
        spoil(spec);
        return spec;
      }).Train(testing::TrainingData);
    });
  };
  EXPECT_THAT(train_with([](EstimatorSpec& spec) { spec.train_op = nullptr; }), HasSubstr("Missing train_op"));
  EXPECT_THAT(train_with([](EstimatorSpec& spec) { spec.loss = Output(); }), HasSubstr("Missing loss"));
  EXPECT_THAT(train_with([](EstimatorSpec& spec) { spec.mode = ModeKeys::kEval; }),
              AllOf(HasSubstr("\"train\""), HasSubstr("\"eval\"")));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([this] {
        Make([](const ModelFnArgs& args) { return EstimatorSpec{.mode = args.mode}; }).Predict(testing::EvaluationData);
      }),
      HasSubstr("Missing predictions"));
  EXPECT_THROW(Make(nullptr), InvalidArgumentError);
}

TEST_F(EstimatorTest, BadCallsAreNamed) {
  Estimator model = Make();
  EXPECT_THROW(model.Train(testing::TrainingData, {.steps = 1, .max_steps = 2}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Train(testing::TrainingData, {.steps = 0}); }),
              HasSubstr("got 0"));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { model.Evaluate([] { return testing::EvaluationData().Repeat(); }); }),
      HasSubstr("endless"));
  EXPECT_THROW(model.Evaluate([] { return testing::EvaluationData().Take(0); }), FailedPreconditionError);
  EXPECT_THROW(model.GetVariableValue("dense/kernel"), NotFoundError);
}

TEST_F(EstimatorTest, AFolderOfAnotherModelIsRefusedByName) {
  Make().Train(testing::TrainingData);
  const std::string message = MessageOf<NotFoundError>([this] {
    Make([](const ModelFnArgs& args) {
      const NameScope scope(args.graph, "other");
      return testing::LinearModel(args);
    }).Train(testing::TrainingData);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("other/dense/"), HasSubstr("not found in checkpoint")));
}

TEST_F(EstimatorTest, ACheckpointInFormatV1IsNeitherIgnoredNorForgotten) {
  const std::string state = "model_checkpoint_path: \"model.ckpt-8\"\n";
  WriteFileAtomically(folder_ / "checkpoint", state);
  WriteFileAtomically(folder_ / "model.ckpt-8", "a table\x57\xfb\x80\x8b\x24\x75\x47\xdb");
  Estimator model = Make();
  const auto error_of = [](const std::function<void()>& call) { return MessageOf<DataLossError>(call); };
  EXPECT_THAT(error_of([&] { model.Train(testing::TrainingData, {.max_steps = 4}); }), HasSubstr("V1 format"));
  EXPECT_THAT(error_of([&] { model.Evaluate(testing::EvaluationData); }), HasSubstr("V1 format"));
  EXPECT_THAT(error_of([&] { model.Predict(testing::EvaluationData); }), HasSubstr("V1 format"));
  EXPECT_EQ(ReadFile(folder_ / "checkpoint"), state);
}

TEST_F(EstimatorTest, AnExportIsASavedModel) {
  Estimator model = Make();
  const auto serving = [](Graph& graph) {
    return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x")};
  };
  EXPECT_THROW(model.ExportModel(folder_ / "export", serving), NotFoundError);
  model.Train(testing::TrainingData);
  const std::string first = model.ExportModel(folder_ / "export", serving);
  const std::string second = model.ExportModel(folder_ / "export", serving);
  EXPECT_NE(first, second);
  EXPECT_EQ(model.ExportModel(folder_ / "export", serving, {.reuse_equal = true}), first);
  const saved_model::SavedModel loaded(second);
  const Tensor logits = loaded.Run({{"x", Tensor::FromValues<float>({5, 5.5f}, Shape{1, 2})}}).at("logits");
  EXPECT_EQ(logits.ToVector<float>()[0], model.Predict(testing::EvaluationData)[1].at("logits").ToVector<float>()[0]);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "export")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("temp-")) << entry.path();
  }
}

TEST_F(EstimatorTest, ExportOutputsAreSignatures) {
  const auto export_with = [this](const std::vector<std::string>& names) {
    Estimator model = Make([&names](const ModelFnArgs& args) {
      EstimatorSpec spec = testing::LinearModel(args);
      for (const std::string& name : names) spec.export_outputs[name] = {{name + "_value", spec.predictions["logits"]}};
      return spec;
    });
    if (model.latest_checkpoint().empty()) model.Train(testing::TrainingData);
    return model.ExportModel(folder_ / "export", [](Graph& graph) {
      return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "x")};
    });
  };
  EXPECT_EQ(saved_model::SavedModel(export_with({"a"}))
                .signatures()
                .at(saved_model::kDefaultSignature)
                .outputs.count("a_value"),
            1u);
  const saved_model::SavedModel two(export_with({"a", saved_model::kDefaultSignature}));
  EXPECT_EQ(two.signatures().size(), 2u);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                export_with({"a", "b"});
              }),
              HasSubstr(saved_model::kDefaultSignature));
}

TEST_F(EstimatorTest, ASecondChiefOfTheFolderIsNamed) {
  Estimator first = Make(), second = Make();
  const auto lock = first.LockForTraining();
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { second.Train(testing::TrainingData); }),
              AllOf(HasSubstr("one chief"), HasSubstr(folder_.path()), HasSubstr("process ")));
  first.Train(testing::TrainingData);
}

}  // namespace
}  // namespace cohort::estimator
