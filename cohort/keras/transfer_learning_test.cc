// Layers that are looked up in a model, frozen, and used in a further model with their weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

std::vector<Floats> Values(const std::vector<Tensor>& tensors) {
  std::vector<Floats> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.ToVector<float>());
  return values;
}

void TrainOutputs(Model model, int64_t outputs, int steps = 3) {
  for (int i = 0; i < steps; ++i) {
    model.TrainOnBatch({Counting(Shape{8, 3}, -1, 0.125f), Counting(Shape{8, outputs}, 1, -0.25f)});
  }
}

const CompileOptions kCompiled = {.optimizer = SGD({.learning_rate = 0.05}), .loss = "mse"};

// Trained for a few steps, so that no weight is what it began with.
Sequential Base() {
  RegisterAll();
  Sequential base({Input(Shape{3}), Dense(6, {.activation = "tanh", .name = "wide"}),
                   BatchNormalization({.momentum = 0.5, .name = "norm"}), Dense(4, {.name = "features"}),
                   Dense(2, {.name = "head"})},
                  {.name = "base", .seed = 5});
  base.Compile(kCompiled);
  TrainOutputs(base, 2);
  return base;
}

// The base without its head and with another.
Model Continued(const Model& base) {
  const LayerTensor features = base.GetLayer("features").output();
  return Model(base.inputs(), {Dense(5, {.name = "new_head"})(features)}, {.name = "continued", .seed = 9});
}

class TransferLearningTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder / name; }
  const testing::TempFolder folder;
};

TEST(ModelLayerTest, LayersAreFoundByNameAndInOrder) {
  const Sequential base = Base();
  std::vector<std::string> names;
  for (const ModelLayer& layer : base.layers()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("wide", "norm", "features", "head"));
  const ModelLayer norm = base.GetLayer("norm");
  EXPECT_EQ(norm.class_name(), "BatchNormalization");
  EXPECT_THAT(norm.WeightNames(), ElementsAre("norm/gamma", "norm/beta", "norm/moving_mean", "norm/moving_variance"));
  EXPECT_EQ(base.GetLayer("features").output().shape(), (Shape{-1, 4}));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { base.GetLayer("feature"); }),
              AllOf(HasSubstr("layer of model 'base'; got 'feature'; did you mean features?"),
                    HasSubstr("it has wide, norm, features, head")));
}

TEST(ModelLayerTest, WeightsOfOneLayerAreReadAndSet) {
  const Sequential base = Base();
  const ModelLayer head = base.GetLayer("head");
  const std::vector<Floats> all = Values(base.GetWeights());
  EXPECT_EQ(Values(head.GetWeights()), std::vector<Floats>(all.end() - 2, all.end()));
  head.SetWeights({Tensor::FromValues(Floats(8, 0.5f), Shape{4, 2}), Tensor::Vector<float>({1, 2})});
  std::vector<Floats> changed = all;
  changed[changed.size() - 2] = Floats(8, 0.5f);
  changed[changed.size() - 1] = {1, 2};
  EXPECT_EQ(Values(base.GetWeights()), changed);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                head.SetWeights({Tensor::Vector<float>({1, 2})});
              }),
              AllOf(HasSubstr("expected 2 weights (head/kernel, head/bias)"), HasSubstr("got 1")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                head.SetWeights({Counting(Shape{4, 3}), Tensor::Vector<float>({1, 2})});
              }),
              AllOf(HasSubstr("float32[4,2] for weight 'head/kernel'"), HasSubstr("float32[4,3]")));
}

TEST(ModelLayerTest, AFurtherModelBeginsWithCopiesAndGoesItsOwnWay) {
  Sequential base = Base();
  Model model = Continued(base);
  EXPECT_EQ(Values(model.GetLayer("features").GetWeights()), Values(base.GetLayer("features").GetWeights()));
  EXPECT_EQ(Values(model.GetLayer("norm").GetWeights()), Values(base.GetLayer("norm").GetWeights()));
  const std::vector<Floats> before = Values(base.GetWeights());
  model.Compile(kCompiled);
  TrainOutputs(model, 5);
  EXPECT_NE(Values(model.GetLayer("features").GetWeights()), Values(base.GetLayer("features").GetWeights()));
  EXPECT_EQ(Values(base.GetWeights()), before) << "two models share no variables";
}

TEST(ModelLayerTest, TheBaseMayBeGoneBeforeTheFurtherModelIsUsed) {
  std::vector<Floats> expected;
  const Model model = [&] {
    const Sequential base = Base();
    expected = Values(base.GetLayer("features").GetWeights());
    return Continued(base);
  }();
  EXPECT_EQ(Values(model.GetLayer("features").GetWeights()), expected);
}

TEST(ModelLayerTest, AThirdModelHasTheWeightsOfTheSecond) {
  Model second = Continued(Base());
  second.Compile(kCompiled);
  TrainOutputs(second, 5);
  const Model third(second.inputs(), {Dense(1)(second.GetLayer("new_head").output())});
  for (const char* layer : {"wide", "norm", "features", "new_head"}) {
    EXPECT_EQ(Values(third.GetLayer(layer).GetWeights()), Values(second.GetLayer(layer).GetWeights())) << layer;
  }
}

TEST(ModelLayerTest, SingleLayersAndWholeModelsBringTheirWeights) {
  Sequential base = Base();
  Sequential chain({Input(Shape{3}), base.GetLayer("wide"), Dense(2)}, {.name = "chain"});
  EXPECT_EQ(Values(chain.GetLayer("wide").GetWeights()), Values(base.GetLayer("wide").GetWeights()));
  const LayerTensor x = Input(Shape{3});
  const Model outer({x}, {Dense(1)(base.AsLayer()(x))});
  const ModelLayer inner = outer.GetLayer("base");
  EXPECT_EQ(Values(inner.GetWeights()), Values(base.GetWeights()));
  EXPECT_EQ(Values(inner.GetLayer("head").GetWeights()), Values(base.GetLayer("head").GetWeights()));
  const Model innermost({x}, {inner.GetLayer("wide")(x)});
  EXPECT_EQ(Values(innermost.GetWeights()), Values(base.GetLayer("wide").GetWeights()));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { inner.GetLayer("wide").output(); }),
              HasSubstr("got 'base/wide', which is inside of another layer"));
}

TEST(ModelLayerTest, InputsOfAnotherShapeAndWeightsOfTwoModelsAreRefused) {
  const Sequential base = Base();
  const LayerTensor wider = Input(Shape{4});
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { Model({wider}, {base.GetLayer("wide")(wider)}); }),
      AllOf(HasSubstr("'wide/kernel'"), HasSubstr("float32[3,6] as in model 'base'"), HasSubstr("float32[4,6]")));
  const Model second = Continued(base);
  const LayerTensor x = Input(Shape{3});
  const LayerTensor twice = second.GetLayer("wide")(x);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Model({x}, {Add()({base.GetLayer("wide")(x), twice})});
              }),
              AllOf(HasSubstr("weights of one model"), HasSubstr("model 'base'"), HasSubstr("model 'continued'")));
}

TEST(ModelLayerTest, ASequentialThatCannotTakeTheWeightsIsRefusedAgain) {
  const Sequential base = Base();
  Sequential chain({base.GetLayer("wide"), Dense(2)});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { chain.Build(Shape{-1, 4}); }), HasSubstr("'wide/kernel'")) << i;
    EXPECT_FALSE(chain.built());
  }
}

TEST_F(TransferLearningTest, AFrozenBaseStaysBitForBitAndTheHeadLearns) {
  Base().Save(Path("base.keras"));
  Model base = LoadModel(Path("base.keras"));
  base.SetTrainable(false);
  Model model = Continued(base);
  model.Compile(kCompiled);
  EXPECT_THAT(model.TrainableWeightNames(), ElementsAre("new_head/kernel", "new_head/bias"));
  const std::vector<Floats> before = Values(model.GetWeights());
  const ModelData batch(Counting(Shape{8, 3}, -1, 0.125f), Counting(Shape{8, 5}, 1, -0.25f));
  const double first = FindLog(model.Evaluate(batch, {.verbose = 0}), "loss").value();
  model.Fit(batch, {.epochs = 30, .verbose = 0});
  EXPECT_LT(FindLog(model.Evaluate(batch, {.verbose = 0}), "loss").value(), 0.5 * first);
  const std::vector<Floats> after = Values(model.GetWeights());
  for (size_t i = 0; i + 2 < after.size(); ++i) EXPECT_EQ(after[i], before[i]) << model.WeightNames()[i];
  EXPECT_NE(after[after.size() - 2], before[after.size() - 2]);
  EXPECT_NE(after.back(), before.back());
  // The file says which layers are frozen, and a loaded model trains the head alone.
  model.Save(Path("model.keras"));
  Model loaded = LoadModel(Path("model.keras"));
  EXPECT_THAT(loaded.TrainableWeightNames(), ElementsAre("new_head/kernel", "new_head/bias"));
  EXPECT_TRUE(loaded.trainable());
  EXPECT_FALSE(loaded.GetLayer("norm").trainable());
  TrainOutputs(loaded, 5);
  const std::vector<Floats> more = Values(loaded.GetWeights());
  for (size_t i = 0; i + 2 < more.size(); ++i) EXPECT_EQ(more[i], before[i]) << loaded.WeightNames()[i];
  EXPECT_NE(more.back(), after.back());
}

TEST(FreezeTest, AFrozenModelIsFitWithAWarning) {
  Sequential base = Base();
  base.SetTrainable(false);
  base.Compile(kCompiled);
  const std::vector<Floats> before = Values(base.GetWeights());
  const ModelData batch(Counting(Shape{8, 3}, -1, 0.125f), Counting(Shape{8, 2}, 1, -0.25f));
  const double loss = FindLog(base.Evaluate(batch, {.verbose = 0}), "loss").value();
  ::testing::internal::CaptureStderr();
  EXPECT_NEAR(FindLog(base.TrainOnBatch(batch), "loss").value(), loss, 1e-5 * loss);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the model has no trainable weights"));
  EXPECT_EQ(Values(base.GetWeights()), before);
}

// A frozen normalization of a training step computes with its moving statistics.
TEST(FreezeTest, AFrozenNormalizationComputesAsInInference) {
  Sequential base = Base();
  base.GetLayer("norm").SetTrainable(false);
  base.Compile(kCompiled);
  const std::vector<Floats> norm = Values(base.GetLayer("norm").GetWeights());
  const Floats wide = Values(base.GetLayer("wide").GetWeights())[0];
  const ModelData batch(Counting(Shape{8, 3}, -1, 0.125f), Counting(Shape{8, 2}, 1, -0.25f));
  const double inference = FindLog(base.Evaluate(batch, {.verbose = 0}), "loss").value();
  EXPECT_NEAR(FindLog(base.TrainOnBatch(batch), "loss").value(), inference, 1e-5 * inference);
  EXPECT_EQ(Values(base.GetLayer("norm").GetWeights()), norm);
  EXPECT_NE(Values(base.GetLayer("wide").GetWeights())[0], wide) << "what lies before it learns through it";
}

TEST(FreezeTest, TheNextCompileObeysAndUntilThenFitWarns) {
  Sequential base = Base();
  base.GetLayer("wide").SetTrainable(false);
  const Floats wide = Values(base.GetLayer("wide").GetWeights())[0];
  ::testing::internal::CaptureStderr();
  TrainOutputs(base, 2, 1);
  TrainOutputs(base, 2, 1);
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(warnings, HasSubstr("layers of model 'base' were frozen or freed since it was first fitted"));
  EXPECT_EQ(warnings.find("frozen or freed"), warnings.rfind("frozen or freed")) << "warned once";
  EXPECT_NE(Values(base.GetLayer("wide").GetWeights())[0], wide);
  base.Compile(kCompiled);
  const Floats frozen = Values(base.GetLayer("wide").GetWeights())[0];
  TrainOutputs(base, 2);
  EXPECT_EQ(Values(base.GetLayer("wide").GetWeights())[0], frozen);
  base.GetLayer("wide").SetTrainable(true);
  base.Compile(kCompiled);
  TrainOutputs(base, 2);
  EXPECT_NE(Values(base.GetLayer("wide").GetWeights())[0], frozen);
}

// A layer with a layer inside of it.
class Wrapped final : public Layer {
 public:
  explicit Wrapped(const LayerRef& inner) : Layer("Wrapped"), inner_(inner) {}
  Output Call(CallContext& ctx, Output x) const override { return ctx.Call(*inner_, x); }

 private:
  const LayerRef inner_;
};

TEST(FreezeTest, FitWarnsOfALayerInsideOfALayerToo) {
  RegisterAll();
  const LayerRef inner = Dense(2);
  Sequential model({Input(Shape{3}), MakeLayer<Wrapped>(inner)});
  model.Compile(kCompiled);
  TrainOutputs(model, 2, 1);
  inner.SetTrainable(false);
  ::testing::internal::CaptureStderr();
  TrainOutputs(model, 2, 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("were frozen or freed"));
}

TEST(FreezeTest, AModelPassesItOnAndAFrozenOuterModelFreezesAll) {
  const Sequential base = Base();
  const LayerTensor x = Input(Shape{3});
  Model outer({x}, {Dense(1, {.name = "top"})(base.AsLayer()(x))});
  outer.GetLayer("base").SetTrainable(false);
  EXPECT_FALSE(outer.GetLayer("base").GetLayer("norm").trainable());
  EXPECT_FALSE(base.GetLayer("norm").trainable()) << "it is the same layer";
  EXPECT_THAT(outer.TrainableWeightNames(), ElementsAre("top/kernel", "top/bias"));
  outer.GetLayer("base").SetTrainable(true);
  outer.SetTrainable(false);
  EXPECT_TRUE(outer.TrainableWeightNames().empty());
}

TEST(FreezeTest, RegularizersOfFrozenLayersAddNothingToTheLoss) {
  RegisterAll();
  Sequential model({Input(Shape{3}), Dense(1, {.kernel_regularizer = regularizers::L2(10.0), .name = "dense"})},
                   {.seed = 2});
  const ModelData batch(Tensor::Zeros(DType::kFloat32, Shape{2, 3}), Tensor::Zeros(DType::kFloat32, Shape{2, 1}));
  model.Compile({.loss = "mse"});
  EXPECT_GT(FindLog(model.Evaluate(batch, {.verbose = 0}), "loss").value(), 0.1);
  model.GetLayer("dense").SetTrainable(false);
  model.Compile({.loss = "mse"});
  EXPECT_EQ(FindLog(model.Evaluate(batch, {.verbose = 0}), "loss").value(), 0);
}

// The first training since Compile decides for training and evaluation.
TEST(FreezeTest, FitAndEvaluateHaveTheSameLayersFrozen) {
  RegisterAll();
  Sequential model({Input(Shape{3}), Dense(1, {.kernel_regularizer = regularizers::L2(10.0), .name = "dense"})},
                   {.seed = 2});
  const ModelData batch(Tensor::Zeros(DType::kFloat32, Shape{2, 3}), Tensor::Zeros(DType::kFloat32, Shape{2, 1}));
  const auto loss = [&] { return FindLog(model.Evaluate(batch, {.verbose = 0}), "loss").value(); };
  const CompileOptions compiled = {.optimizer = SGD({.learning_rate = 0.001}), .loss = "mse"};
  model.Compile(compiled);
  EXPECT_GT(loss(), 0.1);
  model.GetLayer("dense").SetTrainable(false);
  EXPECT_EQ(loss(), 0) << "nothing was trained yet";
  EXPECT_EQ(FindLog(model.TrainOnBatch(batch), "loss").value(), 0);
  model.GetLayer("dense").SetTrainable(true);
  EXPECT_THAT(model.TrainableWeightNames(), ElementsAre("dense/kernel", "dense/bias"));
  EXPECT_EQ(FindLog(model.TrainOnBatch(batch), "loss").value(), 0);
  EXPECT_EQ(loss(), 0);
  model.Compile(compiled);
  EXPECT_GT(FindLog(model.TrainOnBatch(batch), "loss").value(), 0.1);
  model.GetLayer("dense").SetTrainable(false);
  EXPECT_TRUE(model.TrainableWeightNames().empty());
  EXPECT_GT(loss(), 0.1) << "evaluated for the first time, after the training";
}

}  // namespace
}  // namespace cohort::keras
