// Compares the canned estimators with TensorFlow's: the expected numbers are those of tf.compat.v1.estimator of
// TensorFlow 2.15, trained on the same data. Linear models begin with zeros, so that all numbers follow from the data.
#include "cohort/estimator/canned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/partitioners.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/summary/event_reader.h"

namespace cohort::estimator {
namespace {

namespace fc = feature_column;
using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Strings = std::vector<std::string>;
using Floats = std::vector<float>;
using Numbers = std::map<std::string, double>;

const Strings kNames = {"age", "size", "job", "id", "w"};
const Strings kLabels = {"low", "mid", "high"};

// Eight examples in batches of four. `labels` are of any kind.
Input Data(const Tensor& labels, bool repeated) {
  const Tensor age = Tensor::Vector<float>({20, 35, 50, 29, 61, 18, 44, 30});
  const Tensor size =
      Tensor::FromValues<float>({1, 2, 0.5f, -1, 3, 0, -2, 1, 0, 0, 1, 1, 2, -2, -1, 0.5f}, Shape{8, 2});
  const Tensor job = Tensor::FromValues<std::string>({"cook", "", "nurse", "cook", "pilot", "pilot", "", "", "judge",
                                                      "nurse", "cook", "nurse", "pilot", "", "nurse", ""},
                                                     Shape{8, 2});
  const Tensor id = Tensor::FromValues<int64_t>({1, 4, 2, -1, -1, -1, 0, 3, 3, 3, 1, 2, 4, 0, 2, 2}, Shape{8, 2});
  const Tensor w = Tensor::Vector<float>({1, 2, 0.5f, 1, 1, 3, 0, 1});
  const data::Dataset dataset = data::Dataset::FromTensorSlices({age, size, job, id, w, labels}).Batch(4);
  return {repeated ? dataset.Repeat() : dataset, kNames};
}
const Tensor kTwoClasses = Tensor::Vector<int64_t>({0, 1, 1, 0, 1, 0, 1, 0});
const Tensor kThreeClasses =
    Tensor::FromValues<std::string>({"low", "mid", "high", "low", "high", "mid", "mid", "low"}, Shape{8, 1});

ColumnPtr Age() {
  return fc::NumericColumn("age", {.normalizer_fn = [](Output v) { return (v - 30.0f) / 10.0f; }});
}
ColumnPtr Size() { return fc::NumericColumn("size", {.shape = {2}}); }
ColumnPtr AgeGroup() { return fc::BucketizedColumn(fc::NumericColumn("age"), {25, 40}); }
ColumnPtr Job() { return fc::CategoricalColumnWithVocabularyList("job", Strings{"cook", "nurse", "pilot"}); }
ColumnPtr Id() { return fc::CategoricalColumnWithIdentity("id", 5); }
ColumnPtr Crossed() { return fc::CrossedColumn({AgeGroup(), "job"}, 8); }

class CannedTest : public ::testing::Test {
 protected:
  CannedTest() { RegisterAll(); }

  RunConfig Config() const { return {.model_dir = folder_.path(), .tf_config = ""}; }
  // Trains five steps, and compares the metrics of an evaluation.
  static void TrainAndCompare(Estimator& model, const Tensor& labels, const Numbers& expected) {
    model.Train([&] { return Data(labels, true); }, {.steps = 5});
    const EvalMetrics metrics = model.Evaluate([&] { return Data(labels, false); });
    for (const auto& [name, value] : expected) {
      ASSERT_EQ(metrics.count(name), 1u) << name;
      EXPECT_NEAR(metrics.at(name), value, 1e-5) << name;
    }
    EXPECT_EQ(metrics.size(), expected.size() + 1);  // and the global step
  }
  static void ExpectValue(const Estimator& model, const std::string& name, const Floats& expected) {
    const Floats values = model.GetVariableValue(name).ToVector<float>();
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << name << " " << i;
  }
  const TempFolder folder_;
};

TEST_F(CannedTest, LinearClassifierOfTwoClassesIsTensorFlows) {
  LinearClassifier model({.feature_columns = {Age(), Size(), AgeGroup(), Job(), Id(), Crossed()}}, Config(),
                         {.weight_column = "w"});
  TrainAndCompare(model, kTwoClasses,
                  {{"accuracy", 1.0},
                   {"accuracy_baseline", 0.6315789},
                   {"auc", 0.9999998},
                   {"auc_precision_recall", 0.9999998},
                   {"average_loss", 0.1733122},
                   {"label/mean", 0.368421},
                   {"loss", 0.8232329},
                   {"precision", 1.0},
                   {"prediction/mean", 0.4112158},
                   {"recall", 1.0}});
  const std::string at = "linear/linear_model/";
  ExpectValue(model, at + "age/weights", {0.4986719f});
  ExpectValue(model, at + "age_bucketized/weights", {-0.4384448f, 0.1130566f, 0.3371483f});
  ExpectValue(model, at + "age_bucketized_X_job/weights",
              {0.08972818f, -0.2591796f, 0.0f, -0.4568223f, 0.0f, 0.3246267f, -0.2308082f, 0.0f});
  ExpectValue(model, at + "bias_weights", {-0.07102891f});
  ExpectValue(model, at + "id/weights", {-0.2708928f, -0.4384448f, -0.007066343f, -0.05760449f, -0.2308082f});
  ExpectValue(model, at + "job/weights", {0.03029536f, 0.04129244f, 0.258703f});
  ExpectValue(model, at + "size/weights", {0.2124939f, -0.4805883f});

  const std::vector<Prediction> predictions = model.Predict([] { return Data(kTwoClasses, false); });
  ASSERT_EQ(predictions.size(), 8u);
  const Prediction& second = predictions[1];
  EXPECT_NEAR(second.at("logits").ToVector<float>()[0], 1.3570752f, 1e-5);
  EXPECT_NEAR(second.at("logistic").ToVector<float>()[0], 0.7952840f, 1e-5);
  EXPECT_NEAR(second.at("probabilities").ToVector<float>()[0], 0.2047161f, 1e-5);
  EXPECT_THAT(second.at("class_ids").ToVector<int64_t>(), ElementsAre(1));
  EXPECT_THAT(second.at("classes").ToVector<std::string>(), ElementsAre("1"));
  EXPECT_THAT(second.at("all_class_ids").ToVector<int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(second.at("all_classes").ToVector<std::string>(), ElementsAre("0", "1"));
}

// Tables in parts give the numbers of whole ones.
TEST_F(CannedTest, TablesMayBeCutIntoParts) {
  std::vector<Shape> cut;
  const ops::Partitioner in_two = [&](const Shape& shape, DType dtype) {
    std::vector<int64_t> parts = distribute::MinMaxVariablePartitioner(2, 0, /*min_slice_size=*/8)(shape, dtype);
    if (parts[0] > 1) cut.push_back(shape);
    return parts;
  };
  LinearClassifier linear(
      {.feature_columns = {Age(), Size(), AgeGroup(), Job(), Id(), Crossed()}, .partitioner = in_two}, Config(),
      {.weight_column = "w"});
  linear.Train([] { return Data(kTwoClasses, true); }, {.steps = 5});
  EXPECT_THAT(cut, UnorderedElementsAre(Shape{3, 1}, Shape{3, 1}, Shape{5, 1}, Shape{8, 1}));
  EXPECT_NEAR(linear.Evaluate([] { return Data(kTwoClasses, false); }).at("average_loss"), 0.1733122, 1e-5);
  ExpectValue(linear, "linear/linear_model/job/weights", {0.03029536f, 0.04129244f, 0.258703f});

  cut.clear();
  const TempFolder other;
  DNNClassifier deep(
      {.hidden_units = {3}, .feature_columns = {fc::EmbeddingColumn(Job(), 2)}, .input_layer_partitioner = in_two},
      {.model_dir = other.path(), .tf_config = ""});
  deep.Train([] { return Data(kTwoClasses, true); }, {.steps = 2});
  EXPECT_THAT(cut, ElementsAre(Shape{3, 2}));
  EXPECT_THAT(
      deep.GetVariableNames(),
      ::testing::Contains("dnn/input_from_feature_columns/input_layer/job_embedding/embedding_weights/Adagrad"));
}

TEST_F(CannedTest, LinearClassifierOfNamedClassesIsTensorFlows) {
  LinearClassifier model(
      {.feature_columns = {Size(), Job()}}, Config(),
      {.n_classes = 3, .label_vocabulary = kLabels, .loss_reduction = losses::Reduction::kSumOverBatchSize});
  TrainAndCompare(model, kThreeClasses, {{"accuracy", 0.875}, {"average_loss", 0.6299203}, {"loss", 0.6299203}});
  ExpectValue(model, "linear/linear_model/bias_weights", {0.1602205f, -0.01247276f, -0.1744934f});
  const std::vector<Prediction> predictions = model.Predict([] { return Data(kThreeClasses, false); });
  EXPECT_THAT(predictions[1].at("classes").ToVector<std::string>(), ElementsAre("mid"));
  EXPECT_THAT(predictions[1].at("all_classes").ToVector<std::string>(), ElementsAre("low", "mid", "high"));
  EXPECT_NEAR(predictions[1].at("probabilities").ToVector<float>()[1], 0.6640870f, 1e-5);
}

TEST_F(CannedTest, LinearRegressorIsTensorFlows) {
  const Tensor labels =
      Tensor::FromValues<float>({2, 1, 3.5f, 0.5f, 5, 3, 2.9f, -2, 6.1f, 0, 1.8f, 1, 4.4f, 2, 3, -1}, Shape{8, 2});
  LinearRegressor model({.feature_columns = {Size(), AgeGroup()}, .sparse_combiner = "mean"}, Config(),
                        {.label_dimension = 2});
  TrainAndCompare(model, labels,
                  {{"average_loss", 3.43344}, {"label/mean", 2.075}, {"loss", 27.46752}, {"prediction/mean", 1.01316}});
  ExpectValue(model, "linear/linear_model/size/weights", {0.4723159f, 0.4225731f, 0.03062156f, -0.3013404f});
  const std::vector<Prediction> predictions = model.Predict([&] { return Data(labels, false); });
  EXPECT_NEAR(predictions[1].at("predictions").ToVector<float>()[1], 0.3699240f, 1e-5);
}

TEST_F(CannedTest, DNNClassifierLearns) {
  RunConfig config = Config();
  config.tf_random_seed = 3;
  DNNClassifier model({.hidden_units = {8},
                       .feature_columns = {Age(), fc::EmbeddingColumn(Job(), 2), fc::IndicatorColumn(Id())},
                       .optimizer = [](Graph&) { return std::make_shared<train::AdagradOptimizer>(0.3f); },
                       .dropout = 0.1},
                      config);
  model.Train([] { return Data(kTwoClasses, true); }, {.steps = 200});
  const EvalMetrics metrics = model.Evaluate([] { return Data(kTwoClasses, false); });
  EXPECT_EQ(metrics.at("accuracy"), 1.0);
  EXPECT_LT(metrics.at("average_loss"), 0.2);
}

TEST_F(CannedTest, DNNClassifierHasTensorFlowsVariables) {
  DNNClassifier model({.hidden_units = {4, 3},
                       .feature_columns = {Age(), Size(), fc::EmbeddingColumn(Job(), 2), fc::IndicatorColumn(Id())},
                       .batch_norm = true},
                      Config(), {.weight_column = "w"});
  model.Train([] { return Data(kTwoClasses, true); }, {.steps = 1});
  std::map<std::string, Shape> shapes;
  for (const std::string& name : model.GetVariableNames()) {
    if (name.find("Adagrad") == name.npos) shapes[name] = model.GetVariableValue(name).shape();
  }
  const std::string first = "dnn/hiddenlayer_0/", second = "dnn/hiddenlayer_1/";
  EXPECT_THAT(
      shapes,
      UnorderedElementsAre(
          Pair("global_step", Shape{}), Pair(first + "kernel", Shape{10, 4}), Pair(first + "bias", Shape{4}),
          Pair(first + "batchnorm_0/beta", Shape{4}), Pair(first + "batchnorm_0/gamma", Shape{4}),
          Pair(first + "batchnorm_0/moving_mean", Shape{4}), Pair(first + "batchnorm_0/moving_variance", Shape{4}),
          Pair(second + "kernel", Shape{4, 3}), Pair(second + "bias", Shape{3}),
          Pair(second + "batchnorm_1/beta", Shape{3}), Pair(second + "batchnorm_1/gamma", Shape{3}),
          Pair(second + "batchnorm_1/moving_mean", Shape{3}), Pair(second + "batchnorm_1/moving_variance", Shape{3}),
          Pair("dnn/logits/kernel", Shape{3, 1}), Pair("dnn/logits/bias", Shape{1}),
          Pair("dnn/input_from_feature_columns/input_layer/job_embedding/embedding_weights", Shape{3, 2})));
}

TEST_F(CannedTest, WideAndDeepTrainsEachPartByItsOwnOptimizer) {
  DNNLinearCombinedClassifier model({.linear_feature_columns = {Crossed(), Job()},
                                     .dnn_feature_columns = {Age(), fc::EmbeddingColumn(Id(), 2)},
                                     .dnn_hidden_units = {3}},
                                    Config(), {.n_classes = 3, .label_vocabulary = kLabels});
  model.Train([] { return Data(kThreeClasses, true); }, {.steps = 2});
  std::vector<std::string> slots;
  for (const std::string& name : model.GetVariableNames()) {
    if (name.find("Adagrad") != name.npos) slots.push_back("Adagrad of " + name.substr(0, name.find('/')));
    if (name.find("Ftrl") != name.npos) slots.push_back("Ftrl of " + name.substr(0, name.find('/')));
  }
  EXPECT_EQ(std::count(slots.begin(), slots.end(), "Adagrad of dnn"), 5);
  EXPECT_EQ(std::count(slots.begin(), slots.end(), "Ftrl of linear"), 6);  // two for each variable
  EXPECT_EQ(slots.size(), 11u);
  EXPECT_EQ(model.GetVariableValue("global_step").scalar<int64_t>(), 2);
  EXPECT_EQ(model.GetVariableValue("linear/linear_model/job/weights").shape(), (Shape{3, 3}));
}

TEST_F(CannedTest, DNNRegressorTakesAnOptimizerOfTheProgram) {
  int made = 0;
  DNNRegressor model({.hidden_units = {3},
                      .feature_columns = {Age()},
                      .optimizer =
                          [&](Graph&) {
                            ++made;
                            return std::make_shared<train::GradientDescentOptimizer>(0.01f);
                          }},
                     Config());
  const Tensor labels = Tensor::Vector<float>({1, 2, 3, 4, 5, 6, 7, 8});
  model.Train([&] { return Data(labels, true); }, {.steps = 2});
  EXPECT_EQ(made, 1);
  EXPECT_THAT(model.GetVariableNames(), UnorderedElementsAre("dnn/hiddenlayer_0/bias", "dnn/hiddenlayer_0/kernel",
                                                             "dnn/logits/bias", "dnn/logits/kernel", "global_step"));
}

TEST_F(CannedTest, AnExportHasTheSignaturesOfClassifiers) {
  LinearClassifier model({.feature_columns = {Size(), Job()}}, Config());
  model.Train([] { return Data(kTwoClasses, true); }, {.steps = 3});
  const TempFolder exports;
  const std::string path = model.ExportModel(exports.path(), [](Graph& graph) {
    return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1, 2}, "size"),
                               ops::Placeholder(graph, DType::kString, Shape{-1, 2}, "job")};
  });
  saved_model::SavedModel saved(path);
  const std::map<std::string, Tensor> features = {
      {"size", Tensor::FromValues<float>({0.5f, -1}, Shape{1, 2})},
      {"job", Tensor::FromValues<std::string>({"nurse", "cook"}, Shape{1, 2})}};
  const auto classification = saved.Run(features);
  EXPECT_THAT(classification.at("classes").ToVector<std::string>(), ElementsAre("0", "1"));
  const float probability = classification.at("scores").ToVector<float>()[1];
  EXPECT_EQ(saved.Run(features, "classification").at("scores").ToVector<float>()[1], probability);
  EXPECT_NEAR(saved.Run(features, "regression").at("outputs").ToVector<float>()[0], probability, 1e-6);
  EXPECT_NEAR(saved.Run(features, "predict").at("logistic").ToVector<float>()[0], probability, 1e-6);
}

TEST_F(CannedTest, LabelsOfTwoClassesMayLieBetweenThem) {
  const Tensor labels = Tensor::Vector<float>({0.7f, 0.2f, 0.9f, 0.4f, 0.7f, 0.2f, 0.9f, 0.4f});
  LinearClassifier model({.feature_columns = {Age()}}, Config());
  model.Train([&] { return Data(labels, true); }, {.steps = 2});
  EXPECT_NEAR(model.Evaluate([&] { return Data(labels, false); }).at("label/mean"), 0.55, 1e-6);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Train([] { return Data(Tensor::Vector<float>(Floats(8, 1.5f)), true); }, {.steps = 1});
              }),
              HasSubstr("expected labels in [0, 1]; got"));
}

TEST_F(CannedTest, ARegressorTakesAWeightForEachElement) {
  const Tensor labels = Tensor::FromValues<float>({1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3}, Shape{8, 2});
  LinearRegressor model({.feature_columns = {Age()}}, Config(), {.label_dimension = 2, .weight_column = "size"});
  model.Train([&] { return Data(labels, true); }, {.steps = 1});
  // The weights of the first elements add up to 4.5, and those of the second ones to 1.5.
  EXPECT_NEAR(model.Evaluate([&] { return Data(labels, false); }).at("label/mean"), (4.5 + 3 * 1.5) / 6, 1e-6);
}

// A serving function may name its placeholders as the parts of the model are called.
TEST_F(CannedTest, AnExportMayHaveAFeatureWithTheNameOfAPart) {
  const auto data = [] {
    return Input(
        data::Dataset::FromTensorSlices({Tensor::Vector<float>({1, 2}), Tensor::Vector<int64_t>({0, 1})}).Batch(2),
        {"dnn"});
  };
  DNNClassifier model({.hidden_units = {2}, .feature_columns = {fc::NumericColumn("dnn")}}, Config());
  model.Train(data, {.steps = 1});
  const TempFolder exports;
  const std::string path = model.ExportModel(exports.path(), [](Graph& graph) {
    return std::vector<Output>{ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "dnn")};
  });
  const auto result = saved_model::SavedModel(path).Run({{"dnn", Tensor::Vector<float>({1, 2, 3})}});
  EXPECT_EQ(result.at("scores").shape(), (Shape{3, 2}));
}

TEST_F(CannedTest, ATrainingWritesItsLosses) {
  RunConfig config = Config();
  config.save_summary_steps = 1;
  LinearClassifier model({.feature_columns = {Age()}}, config);
  model.Train([] { return Data(kTwoClasses, true); }, {.steps = 2});
  std::vector<std::string> tags;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    if (file.path().filename().string().find("tfevents") == std::string::npos) continue;
    EventReader reader(file.path());
    for (Event event; reader.Read(&event) == RecordReader::Outcome::kRecord;) {
      for (const SummaryValue& value : event.values) tags.push_back(value.tag);
    }
  }
  EXPECT_THAT(tags, ::testing::IsSupersetOf({"loss", "average_loss"}));
}

TEST_F(CannedTest, BadOptionsAndDataAreNamed) {
  const auto why = [&](const auto& act) { return MessageOf<InvalidArgumentError>(act); };
  EXPECT_THAT(why([&] { DNNClassifier({.hidden_units = {}, .feature_columns = {Age()}}, Config()); }),
              HasSubstr("hidden_units of at least one layer"));
  EXPECT_THAT(why([&] { DNNClassifier({.hidden_units = {0}, .feature_columns = {Age()}}, Config()); }),
              HasSubstr("at least 1 hidden unit; got 0"));
  EXPECT_THAT(why([&] { DNNClassifier({.hidden_units = {3}, .feature_columns = {}}, Config()); }),
              HasSubstr("at least one column in feature_columns"));
  EXPECT_THAT(why([&] { DNNClassifier({.hidden_units = {3}, .feature_columns = {Age()}, .dropout = 1.0}, Config()); }),
              HasSubstr("a dropout in [0, 1); got 1"));
  EXPECT_THAT(why([&] { DNNLinearCombinedRegressor({}, Config()); }), HasSubstr("got neither"));
  EXPECT_THAT(
      why([&] { DNNLinearCombinedRegressor({.linear_feature_columns = {Job()}, .dnn_hidden_units = {3}}, Config()); }),
      HasSubstr("dnn_feature_columns for the dnn_hidden_units"));
  const LinearOptions job{.feature_columns = {Job()}};
  EXPECT_THAT(why([&] { LinearClassifier(job, Config(), {.loss_reduction = losses::Reduction::kNone}); }),
              HasSubstr("got kNone"));
  EXPECT_THAT(why([&] { LinearClassifier(job, Config(), {.n_classes = 1}); }), HasSubstr("n_classes of at least 2"));
  EXPECT_THAT(why([&] { LinearClassifier(job, Config(), {.n_classes = 2, .label_vocabulary = kLabels}); }),
              HasSubstr("of n_classes = 2 entries; got 3"));
  EXPECT_THAT(why([&] { LinearRegressor(job, Config(), {.label_dimension = 0}); }), HasSubstr("label_dimension"));

  const TempFolder other;
  LinearClassifier numbers(job, Config()),
      names(job, {.model_dir = other.path(), .tf_config = ""}, {.n_classes = 3, .label_vocabulary = kLabels});
  const auto train = [](Estimator& model, const Tensor& labels) {
    model.Train([&] { return Data(labels, false); }, {.steps = 1});
  };
  EXPECT_THAT(why([&] {
                train(numbers, Tensor::Vector<int64_t>({0, 1, 2, 0, 0, 0, 0, 0}));
              }),
              HasSubstr("expected labels in [0, 1]; got"));
  EXPECT_THAT(why([&] { train(numbers, kThreeClasses); }), HasSubstr("set label_vocabulary"));
  EXPECT_THAT(why([&] { train(names, kTwoClasses); }), HasSubstr("expected strings as labels"));
  EXPECT_THAT(why([&] { train(names, Tensor::Vector<std::string>(Strings(8, "huge"))); }), HasSubstr("huge"));
  EXPECT_THAT(why([&] {
                train(numbers, Tensor::Zeros(DType::kInt64, Shape{8, 2}));
              }),
              HasSubstr("expected labels of shape [batch] or [batch, 1]; got [?,2]"));
  LinearClassifier wide({.feature_columns = {Job()}}, Config(), {.weight_column = "weight"});
  EXPECT_THAT(MessageOf<NotFoundError>([&] { train(wide, kTwoClasses); }),
              AllOf(HasSubstr("'weight'"), HasSubstr("age, id, job, size, w")));
}

}  // namespace
}  // namespace cohort::estimator
