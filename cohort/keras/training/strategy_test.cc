// Models on strategies: N replicas make the updates of one device with the whole global batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/test/test_device.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/seeded_noise.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

distribute::StrategyPtr Make(const std::string& kind, int replicas) {
  if (kind == "mirrored") return distribute::MirroredOnCpus(replicas);
  const std::string prefix = "mirrored_on_";  // and a type of device with streams
  const bool on_streams = kind.rfind(prefix, 0) == 0;
  const std::string type = on_streams ? kind.substr(prefix.size()) : "CPU";
  if (on_streams) {
    RegisterAll();
    RegisterTestBackend();
    cuda::RegisterGpusForTests();
  }
  std::vector<std::string> devices;
  devices.reserve(static_cast<size_t>(replicas));
  for (int i = 0; i < replicas; ++i) devices.push_back(StrCat("/device:", type, ":", i));
  if (on_streams) return distribute::Mirrored(devices);
  return distribute::CentralStorage({.compute_devices = devices});
}

OptimizerPtr MakeOptimizer(const std::string& name) {
  if (name == "momentum") return SGD({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true});
  if (name == "clipped") return SGD({.learning_rate = 0.5, .global_clipnorm = 0.1});
  if (name == "adamw") return AdamW({.learning_rate = 0.01, .epsilon = 1e-3});
  if (name == "adagrad") return Adagrad({.learning_rate = 0.05});
  if (name == "rmsprop") return RMSprop({.learning_rate = 0.01, .epsilon = 1e-3, .centered = true});
  if (name == "nadam") return Nadam({.learning_rate = 0.01, .epsilon = 1e-3});
  return Ftrl({.learning_rate = 0.05, .l1_regularization_strength = 1e-3});
}

class Replicas : public ::testing::TestWithParam<std::tuple<std::string, int, std::string>> {};

// Other data for every replica, an uneven last batch, sometimes fewer examples than replicas, regularizers, weights of
// examples and classes, moving statistics over all replicas, losses by count and by weight.
TEST_P(Replicas, UpdateAsOneDevice) {
  const auto& [kind, replicas, optimizer] = GetParam();
  for (int variant = 0; variant < 4; ++variant) {
    TrainingCase one;
    one.optimizer = MakeOptimizer(optimizer);
    one.examples = 22 + variant;
    one.batch_size = variant == 3 ? 3 : 8 + variant;
    one.regularized = variant % 2 == 0;
    one.weighted = variant >= 1;
    one.by_weight = variant == 2;
    one.normalized = variant != 1;
    one.seed = 17 * replicas + variant;
    const Trained expected = Train(one, nullptr);
    const Trained got = Train(one, Make(kind, replicas));
    EXPECT_LT(DistanceOfUpdates(expected, got), 2e-5) << "variant " << variant;
    EXPECT_NEAR(got.loss, expected.loss, 1e-5 * std::abs(expected.loss) + 1e-6) << "variant " << variant;
    EXPECT_NEAR(got.metric, expected.metric, 1e-5) << "variant " << variant;
    EXPECT_NEAR(got.evaluated, expected.evaluated, 1e-4 * std::abs(expected.evaluated)) << "variant " << variant;
  }
}

std::vector<std::vector<float>> Weights(const Trained& trained) {
  std::vector<std::vector<float>> weights;
  for (const Tensor& weight : trained.after) weights.push_back(weight.ToVector<float>());
  return weights;
}

// Fit reduces gradients where they lie. RING is the control: it reduces in host memory. The sum of two replicas has one
// order only, so the bits are the same. With two cards, the first two GPUs are on
// different cards, and the first and the third on one.
TEST(ReplicasOnGpus, FitReducesGradientsInTheMemoryOfTheDevices) {
  RegisterAll();
  const cuda::DriverCounts& counts = cuda::RegisterGpusForTests().counts;
  TrainingCase one;
  one.optimizer = SGD({.learning_rate = 0.05, .momentum = 0.9});
  one.normalized = true;
  const auto fit = [&](const std::string& second, distribute::CommunicationImplementation implementation,
                       int64_t* reductions) {
    const int64_t before = counts.launches_of("CombineKernel");
    const Trained trained = Train(one, distribute::Mirrored({.devices = {"/device:GPU:0", second},
                                                             .communication = {.implementation = implementation}}));
    *reductions = counts.launches_of("CombineKernel") - before;
    return Weights(trained);
  };
  for (const char* second : {"/device:GPU:1", "/device:GPU:2"}) {
    int64_t reductions = 0, again = 0, by_ring = 0;
    const auto weights = fit(second, distribute::CommunicationImplementation::kAuto, &reductions);
    EXPECT_GE(reductions, 6) << "one in each step";
    EXPECT_EQ(fit(second, distribute::CommunicationImplementation::kAuto, &again), weights) << "the same bits";
    EXPECT_EQ(again, reductions);
    EXPECT_EQ(fit(second, distribute::CommunicationImplementation::kRing, &by_ring), weights);
    EXPECT_EQ(by_ring, 0);
  }
}

// Adds the sum of its input to its weight each time it is called.
class Accumulates final : public Layer {
 public:
  Accumulates() : Layer("Accumulates") {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "sum", .shape = Shape{}, .initializer = "zeros", .trainable = false}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    ctx.AddUpdate("sum", ctx.weight("sum") * 2 + ops::Sum(inputs[0]));
    return inputs;
  }
};

// A step that calls the model on its input and on three times that.
void CallTwice(StepContext& step) {
  step.Call(step.x());
  const Output loss = step.Loss(step.Call({step.x()[0] * 3}));
  step.ApplyGradients(step.Gradients(loss));
  step.ReportLoss(loss);
}

// The first elements of the weights, by name.
std::map<std::string, float> FirstElements(Model& model) {
  std::map<std::string, float> weights;
  const std::vector<std::string> names = model.WeightNames();
  const std::vector<Tensor> values = model.GetWeights();
  for (size_t i = 0; i < names.size(); ++i) weights[names[i]] = values[i].data<float>()[0];
  return weights;
}

// Batches of mean 1 and variance 4, then of mean 3 and variance 1. As in Keras the moving mean is 0.5 (0.5 0 + 0.5 1) +
// 0.5 3 and the moving variance 0.5 (0.5 1 + 0.5 4) + 0.5 1.
TEST(UpdatesOfOneWeight, AreChainedBetweenTheCallsOfALayer) {
  const Tensor xa = Tensor::FromValues(std::vector<float>{-1, 3, -1, 3}, Shape{4, 1});
  const Tensor xb = Tensor::FromValues(std::vector<float>{2, 4, 2, 4}, Shape{4, 1});
  for (const bool synchronized : {false, true}) {
    for (const distribute::StrategyPtr& strategy : {distribute::Default(), Make("mirrored", 2), Make("central", 2)}) {
      const LayerRef normalize = BatchNormalization({.momentum = 0.5, .synchronized = synchronized, .name = "bn"});
      const LayerRef sum = MakeLayer<Accumulates>();
      const LayerTensor a = Input(Shape{1}), b = Input(Shape{1});
      Model siamese({a, b}, {Dense(1)(Add()({normalize(sum(a)), normalize(sum(b))}))}, {.strategy = strategy});
      siamese.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = "mse"});
      siamese.Fit(ModelData({xa, xb}, {xa}), {.batch_size = 4, .epochs = 1, .verbose = 0, .shuffle = false});
      const std::map<std::string, float> weights = FirstElements(siamese);
      const std::string where = StrCat(strategy->name(), " ", synchronized);
      EXPECT_NEAR(weights.at("bn/moving_mean"), 1.75f, 1e-5) << where;
      EXPECT_NEAR(weights.at("bn/moving_variance"), 1.75f, 1e-5) << where;
      // The sums of a replica's shares are 4 / replicas and 12 / replicas.
      EXPECT_NEAR(weights.at("accumulates/sum"), 20.0f / static_cast<float>(strategy->num_replicas_in_sync()), 1e-5)
          << where;
    }
  }
}

TEST(UpdatesOfOneWeight, AreChainedBetweenTheCallsOfAStep) {
  const Tensor x = Tensor::FromValues(std::vector<float>{-1, 3, -1, 3}, Shape{4, 1});
  for (const distribute::StrategyPtr& strategy : {distribute::Default(), Make("mirrored", 2)}) {
    Sequential model({Input(Shape{1}), BatchNormalization({.momentum = 0.5, .name = "bn"}), Dense(1)},
                     {.strategy = strategy});
    model.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = "mse", .train_step = CallTwice});
    model.Fit(x, x, {.batch_size = 4, .epochs = 1, .verbose = 0, .shuffle = false});
    EXPECT_NEAR(FirstElements(model).at("bn/moving_mean"), 1.75f, 1e-5) << strategy->name();
    EXPECT_NEAR(FirstElements(model).at("bn/moving_variance"), 19.25f, 1e-4) << strategy->name();  // 4, then 36
  }
}

class UpdatesWithAnotherShape final : public Layer {
 public:
  UpdatesWithAnotherShape() : Layer("UpdatesWithAnotherShape") {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "sum", .shape = Shape{}, .initializer = "zeros", .trainable = false}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    ctx.AddUpdate("sum", ops::Const(ctx.graph(), std::vector<float>{1, 2}));
    return inputs;
  }
};

TEST(UpdatesOfOneWeight, HaveItsDtypeAndShape) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                Sequential model({Input(Shape{1}), MakeLayer<UpdatesWithAnotherShape>(), Dense(1)});
                model.Predict(Tensor::Zeros(DType::kFloat32, Shape{1, 1}));
              }),
              AllOf(HasSubstr("weight 'sum' of layer 'updates_with_another_shape'"), HasSubstr("float32[]"),
                    HasSubstr("float32[2]")));
}

// In bfloat16 sums are rounded at other places: the updates are near, and those of weights in float32.
TEST(MixedPrecision, ReplicasUpdateNearlyAsOneDevice) {
  TrainingCase one;
  one.optimizer = SGD({.learning_rate = 0.1, .momentum = 0.9});
  one.normalized = true;
  one.dtype_policy = "mixed_bfloat16";
  const Trained expected = Train(one, nullptr);
  EXPECT_EQ(expected.after[0].dtype(), DType::kFloat32);
  for (const char* kind : {"mirrored", "central"}) {
    const Trained got = Train(one, Make(kind, 3));
    EXPECT_LT(DistanceOfUpdates(expected, got), 0.1) << kind;
    EXPECT_NEAR(got.loss, expected.loss, 0.02 * expected.loss) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Replicas,
                         ::testing::Combine(::testing::Values("mirrored", "central"), ::testing::Values(1, 2, 3, 4),
                                            ::testing::Values("momentum", "clipped", "adamw", "adagrad", "rmsprop",
                                                              "ftrl", "nadam")),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param), "_",
                                         std::get<2>(info.param));
                         });

// The same on devices with streams and memories of their own.
INSTANTIATE_TEST_SUITE_P(OnStreams, Replicas,
                         ::testing::Combine(::testing::Values("mirrored_on_TEST", "mirrored_on_GPU"),
                                            ::testing::Values(1, 2), ::testing::Values("momentum", "clipped", "adamw")),
                         [](const auto& info) {
                           return StrCat(std::get<0>(info.param), "_", std::get<1>(info.param), "_",
                                         std::get<2>(info.param));
                         });

// Images: convolutions, pools and statistics of batches, also of replicas without examples.
TEST(KerasStrategyTest, ConvolutionsWithFewerExamplesThanReplicas) {
  const Tensor x = SeededNoise(Shape{6, 8, 8, 3}, 3);
  const Tensor y = Tensor::FromValues(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, Shape{6});
  std::vector<Trained> trained;
  for (const distribute::StrategyPtr& strategy :
       {distribute::Default(), Make("mirrored", 3), Make("central", 4), Make("mirrored", 4)}) {
    Sequential model({Input(Shape{8, 8, 3}), Conv2D(16, 3, {.padding = "same", .activation = "selu"}),
                      SeparableConv2D(16, 3, {.activation = "relu"}), BatchNormalization({.synchronized = true}),
                      MaxPooling2D(2), DepthwiseConv2D(2, {.padding = "same"}), AveragePooling2D(2),
                      GlobalAveragePooling2D(), LayerNormalization(), Dense(3, {.activation = "softmax"})},
                     {.seed = 5, .session = {.intra_op_parallelism_threads = 1}, .strategy = strategy});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1}), .loss = "sparse_categorical_crossentropy"});
    Trained one;
    one.before = model.GetWeights();
    one.loss = model.Fit(x, y, {.batch_size = 2, .epochs = 2, .verbose = 0})["loss"].back();
    one.after = model.GetWeights();
    trained.push_back(one);
  }
  for (size_t i = 1; i < trained.size(); ++i) {
    EXPECT_NEAR(trained[i].loss, trained[0].loss, 1e-4);
    EXPECT_LT(DistanceOfUpdates(trained[0], trained[i]), 2e-3) << i;  // ill-conditioned: batches of 2 are normalized
  }
}

// Its sums over replicas have nothing that is trained before them: the signal check passes them at all replicas or
// none.
TEST(KerasStrategyTest, SynchronizedNormalizationOfTheInput) {
  const Tensor x = SeededNoise(Shape{9, 4}, 3);
  std::vector<double> losses;
  for (const distribute::StrategyPtr& strategy : {distribute::Default(), Make("mirrored", 2), Make("central", 3)}) {
    Sequential model({Input(Shape{4}), BatchNormalization({.synchronized = true}), Dense(1)},
                     {.seed = 5, .strategy = strategy});
    model.Compile({.loss = "mse"});
    losses.push_back(model.Fit(x, SeededNoise(Shape{9, 1}, 4), {.batch_size = 9, .verbose = 0})["loss"].back());
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-5);
}

// Statistics of each replica's own examples: the moving ones are the mean over the replicas that had some.
TEST(KerasStrategyTest, MovingStatisticsAreMeansOverReplicas) {
  for (const char* kind : {"mirrored", "central"}) {
    Sequential model({Input(Shape{1}), BatchNormalization({.momentum = 0.75})}, {.strategy = Make(kind, 3)});
    model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
    const Tensor x = Tensor::FromValues(std::vector<float>{2, 8}, Shape{2, 1});  // one each, and none
    model.TrainOnBatch({x, x});
    const std::vector<Tensor> weights = model.GetWeights();
    EXPECT_NEAR(weights[2].data<float>()[0], 0.25 * 5, 1e-6) << kind;
    EXPECT_NEAR(weights[3].data<float>()[0], 0.75, 1e-6) << kind;
  }
}

int NodesOf(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node* node : graph.nodes()) count += node->op().name() == op ? 1 : 0;
  return count;
}

// Rows that several replicas look up, and one replica several times; replicas without examples. Of a large table the
// rows alone travel, of a small one the dense sum.
TEST(KerasStrategyTest, RowsOfLookupsAreSummed) {
  const Tensor x = Tensor::FromValues(std::vector<int64_t>{0, 1, 1, 1, 4, 0, 5, 4, 0, 0}, Shape{5, 2});
  for (const int64_t rows : {6, 20'000}) {
    for (const OptimizerPtr& optimizer :
         {SGD({.learning_rate = 0.1}), SGD({.learning_rate = 0.1, .clipnorm = 0.05}), Adagrad({.learning_rate = 0.1}),
          Adam({.learning_rate = 0.1, .epsilon = 1e-3})}) {
      std::vector<Trained> trained;
      for (const auto& strategy :
           {distribute::Default(), Make("mirrored", 2), Make("mirrored", 3), Make("central", 3)}) {
        Sequential model({Input(Shape{2}, {.dtype = DType::kInt64}), Embedding(rows, 4), Flatten(), Dense(1)},
                         {.strategy = strategy});
        model.Compile({.optimizer = optimizer, .loss = "mse"});
        Trained one;
        one.before = model.GetWeights();
        model.Fit(x, Counting(Shape{5, 1}), {.batch_size = 4, .epochs = 3, .verbose = 0});
        one.after = model.GetWeights();
        trained.push_back(one);
        EXPECT_LT(DistanceOfUpdates(trained[0], one), 1e-4) << optimizer->name() << ", " << rows << " rows";
        const bool gathers = rows > 6 && strategy->name() == "MirroredStrategy";
        EXPECT_EQ(NodesOf(model.graph(), "CollectiveGather"), gathers ? 2 * strategy->num_replicas_in_sync() : 0);
      }
    }
  }
}

// A step of one's own runs once for each replica.
TEST(KerasStrategyTest, TrainingStepsOfOnesOwn) {
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 2, 3, 4}, Shape{4, 1});
  std::vector<int> replicas;
  const auto doubled = [&replicas](StepContext& step) {
    const std::vector<Output> y_pred = step.Call(step.x());
    const Output loss = step.Loss(y_pred);
    auto gradients = step.Gradients(loss);
    for (auto& pair : gradients) pair.gradient.values = pair.gradient.values * 2.0f;
    step.ApplyGradients(gradients);
    step.ReportLoss(loss);
    step.UpdateMetrics(y_pred);
    replicas.push_back(step.replica().replica_id_in_sync_group());
  };
  Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false, .kernel_initializer = "zeros"})},
                   {.strategy = Make("mirrored", 2)});
  model.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = "mse", .train_step = doubled});
  model.TrainOnBatch({x, x});
  EXPECT_THAT(replicas, ElementsAre(0, 1));
  EXPECT_NEAR(model.GetWeights()[0].data<float>()[0], 2 * 0.01 * 2 * 30 / 4, 1e-6);  // 2 lr d/dw mean (w x - x)^2
}

TEST(KerasStrategyTest, WeightsAndRatesAreThoseOfAllReplicas) {
  for (const char* kind : {"mirrored", "central"}) {
    const Tensor x = Tensor::FromValues(std::vector<float>{1, 2, 3, 4}, Shape{4, 1});
    Sequential model({Input(Shape{1}), Dense(1, {.use_bias = false})}, {.strategy = Make(kind, 2)});
    model.Compile({.optimizer = SGD({.learning_rate = 0.01}), .loss = "mse"});
    model.SetWeights({Tensor::FromValues(std::vector<float>{3}, Shape{1, 1})});
    model.SetLearningRate(0.1);
    const Logs logs = model.TrainOnBatch({x, x});
    EXPECT_NEAR(FindLog(logs, "loss").value(), 4 * 7.5, 1e-5);
    EXPECT_NEAR(model.GetWeights()[0].data<float>()[0], 3 - 0.1 * 2 * 2 * 7.5, 1e-5);
    // Fit looks at its begin and end whether the replicas are equal.
    model.Fit(x, x, {.batch_size = 4, .epochs = 3, .verbose = 0, .replica_check_steps = 1});
    EXPECT_EQ(model.Iterations(), 4);
    EXPECT_EQ(model.Predict(x).num_elements(), 4);
  }
}

// The replicas have different numbers of examples. Targets of 0 and 1 fit all of these losses.
TEST(KerasStrategyTest, LossesAndMetricsAreThoseOfAllReplicas) {
  const Tensor x = SeededNoise(Shape{11, 4}, 5);
  Tensor y(DType::kFloat32, Shape{11, 3});
  Tensor weight(DType::kFloat32, Shape{11});
  for (int64_t i = 0; i < 33; ++i) y.data<float>()[i] = i % 5 == 0 || i % 7 == 2 ? 1.0f : 0.0f;
  for (int64_t i = 0; i < 11; ++i) weight.data<float>()[i] = static_cast<float>(i % 4);
  const auto train = [&](const LossPtr& loss, const std::string& policy, const distribute::StrategyPtr& strategy) {
    Sequential model({Dense(5, {.activation = "tanh"}), Dense(3, {.activation = "sigmoid"})},
                     {.dtype_policy = policy, .seed = 2, .strategy = strategy});
    model.Compile({.optimizer = SGD({.learning_rate = 0.05}),
                   .loss = loss,
                   .metrics = {"precision", Recall({.class_id = 1}), "root_mean_squared_error"},
                   .weighted_metrics = {Precision({.thresholds = 0.4, .name = "weighted_precision"}), "recall",
                                        "cosine_similarity"}});
    const ModelData data(x, y, weight);
    const History history = model.Fit(data, {.batch_size = 4, .epochs = 2, .verbose = 0, .shuffle = false});
    const Logs logs = model.Evaluate(data, {.batch_size = 5, .verbose = 0});
    std::vector<double> all;
    for (const auto& [name, value] : logs) {
      EXPECT_TRUE(std::isfinite(value)) << loss->name() << " " << name;
      EXPECT_NE(value, 0.0) << loss->name() << " " << name;
      all.push_back(value);
      all.push_back(history[name].back());
    }
    EXPECT_EQ(all.size(), 14u);
    return all;
  };
  for (const LossPtr& loss : {MeanSquaredLogarithmicError(), LogCosh(), Poisson(), Hinge(), SquaredHinge(),
                              CosineSimilarity(), KLDivergence({.reduction = Reduction::kMeanWithSampleWeight})}) {
    const std::vector<double> expected = train(loss, "float32", nullptr);
    for (const std::string kind : {"mirrored", "central"}) {
      const std::vector<double> got = train(loss, "float32", Make(kind, 3));
      EXPECT_THAT(got, ::testing::Pointwise(::testing::DoubleNear(1e-5), expected)) << loss->name() << " " << kind;
    }
    const std::vector<double> mixed = train(loss, "mixed_bfloat16", nullptr);
    EXPECT_NEAR(mixed[0], expected[0], 0.02 * std::abs(expected[0]) + 0.01) << loss->name();
  }
}

TEST(KerasStrategyTest, AReplicaThatDivergesIsNamed) {
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 2, 3, 4}, Shape{4, 1});
  Sequential model({Input(Shape{1}), Dense(1), Dense(1)}, {.strategy = Make("mirrored", 3)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  for (VariableInfo* info : model.graph().variables()) {
    if (info->name != "dense_1/bias/replica_2") continue;
    model.session().Run(ops::Variable(info).Assign(ops::Const(model.graph(), std::vector<float>{0.5f})));
  }
  EXPECT_THAT(MessageOf<DataLossError>([&] { model.Fit(x, x, {.verbose = 0}); }),
              AllOf(HasSubstr("weight 'dense_1/bias' of replica 2 (/device:CPU:2)"), HasSubstr("0 updates")));
}

TEST(KerasStrategyTest, ASavedModelGoesOnOnReplicas) {
  const testing::TempFolder folder;
  const std::string path = folder / "model.keras";
  const Tensor x = SeededNoise(Shape{20, 5}, 1), y = SeededNoise(Shape{20, 3}, 2);
  const FitOptions options = {.batch_size = 8, .verbose = 0, .shuffle = false};
  Sequential model({Input(Shape{5}), Dense(8, {.activation = "tanh"}), Dense(3)}, {.seed = 3});
  model.Compile({.optimizer = "adam", .loss = "mse"});
  model.Fit(x, y, options);
  model.Save(path);
  Model loaded = LoadModel(path, {.strategy = distribute::MirroredOnCpus(3)});
  Trained one{model.GetWeights(), {}}, three{loaded.GetWeights(), {}};
  model.Fit(x, y, options);
  loaded.Fit(x, y, options);
  one.after = model.GetWeights();
  three.after = loaded.GetWeights();
  EXPECT_LT(DistanceOfUpdates(one, three), 1e-5);
  EXPECT_EQ(loaded.Iterations(), model.Iterations());
}

// Half a model on each of two devices.
class OnDevice final : public Layer {
 public:
  OnDevice(std::string device, LayerRef inner)
      : Layer("OnDevice"), device_(std::move(device)), inner_(std::move(inner)) {}
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    const DeviceScope device(ctx.graph(), device_);
    return ctx.Call(*inner_, inputs);
  }

 private:
  const std::string device_;
  const LayerRef inner_;
};

TEST(KerasStrategyTest, HalfAModelOnEachOfTwoDevices) {
  std::vector<Trained> trained;
  for (const bool divided : {false, true}) {
    const std::string second = divided ? "/cpu:1" : "/cpu:0";
    SessionConfig config;
    config.device_count["CPU"] = 2;
    Sequential model(
        {MakeLayer<OnDevice>("/cpu:0", Dense(8, {.activation = "tanh"})), MakeLayer<OnDevice>(second, Dense(3))},
        {.seed = 3, .session = config});
    model.Compile({.optimizer = "adam", .loss = "mse"});
    model.Build(Shape{-1, 5});
    Trained one;
    one.before = model.GetWeights();
    model.Fit(SeededNoise(Shape{20, 5}, 1), SeededNoise(Shape{20, 3}, 2), {.batch_size = 8, .epochs = 2, .verbose = 0});
    one.after = model.GetWeights();
    trained.push_back(one);
    for (const VariableInfo* variable : model.graph().variables()) {
      const bool of_second = variable->name.find("on_device_1/") != std::string::npos;
      if (variable->name.find("dense") == std::string::npos) continue;
      EXPECT_EQ(DeviceName::Parse(variable->handle.node->device()), DeviceName::Parse(of_second ? second : "/cpu:0"))
          << variable->name;
    }
  }
  EXPECT_LT(DistanceOfUpdates(trained[0], trained[1]), 1e-6);
}

}  // namespace
}  // namespace cohort::keras
