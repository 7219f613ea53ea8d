// Models that are saved and loaded again, and files that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/layers/preprocessing/image_preprocessing.h"
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

class ModelSavingTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder / name; }
  const testing::TempFolder folder;
};

std::vector<Floats> Weights(Model model) {
  std::vector<Floats> values;
  for (const Tensor& weight : model.GetWeights()) values.push_back(weight.ToVector<float>());
  return values;
}

std::unique_ptr<Sequential> Small(const std::string& name = "small") {
  auto model =
      std::make_unique<Sequential>(std::vector<SequentialItem>{Input(Shape{2}), Dense(3, {.activation = "tanh"}),
                                                               BatchNormalization(), Dense(1, {.name = "last"})},
                                   ModelOptions{.name = name, .seed = 7});
  model->Compile({.optimizer = Adam({.learning_rate = 0.05}), .loss = "mse", .metrics = {"mae"}});
  return model;
}

// `steps` steps on the same batch; the last loss.
double Train(Model model, int steps) {
  const ModelData batch(Counting(Shape{4, 2}), Counting(Shape{4, 1}, 3, -2));
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    model.ResetMetrics();
    loss = model.TrainOnBatch(batch)[0].second;
  }
  return loss;
}

TEST_F(ModelSavingTest, ALoadedModelGoesOnAsTheSavedOne) {
  const auto model = Small();
  Train(*model, 3);
  model->Save(Path("a.keras"));
  Model loaded = LoadModel(Path("a.keras"));
  EXPECT_EQ(loaded.name(), "small");
  EXPECT_EQ(loaded.WeightNames(), model->WeightNames());
  EXPECT_EQ(Weights(loaded), Weights(*model));
  EXPECT_EQ(loaded.Iterations(), 3);
  // Saved again before it was trained: the optimizer's state goes through.
  loaded.Save(Path("b.keras"));
  EXPECT_EQ(ReadModelArchive(Path("b.keras")).config, ReadModelArchive(Path("a.keras")).config);
  Model again = LoadModel(Path("b.keras"));
  const double loss = Train(*model, 5);
  EXPECT_EQ(Train(loaded, 5), loss);
  EXPECT_EQ(Train(again, 5), loss);
  EXPECT_EQ(Weights(loaded), Weights(*model));
  EXPECT_EQ(loaded.Evaluate(Counting(Shape{4, 2}), Counting(Shape{4, 1}), {.verbose = 0})[1].first, "mae");
}

// A layer keeps the idf weights that it was made with, so those of the file must be the same.
TEST_F(ModelSavingTest, OtherIdfWeightsAreRefused) {
  const auto model = [](const std::vector<double>& idf_weights) {
    return Sequential({Input(Shape{2}, {.dtype = DType::kString}),
                       StringLookup({.vocabulary = {"a", "b"}, .idf_weights = idf_weights, .output_mode = "tf_idf"})});
  };
  const std::string path = Path("idf.weights.h5");
  SaveWeights(model({0.5, 2}), path);
  Sequential same = model({0.5, 2}), other = model({0.5, 3});
  LoadWeights(same, path);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LoadWeights(other, path); }),
              AllOf(HasSubstr("expected the idf_weights of layer 'string_lookup"), HasSubstr("has other ones")));
}

TEST_F(ModelSavingTest, ALearningRateThatIsSetAfterTheLoadStays) {
  const auto model = Small();
  Train(*model, 3);
  model->Save(Path("rate.keras"));
  Model loaded = LoadModel(Path("rate.keras"));
  loaded.SetLearningRate(0.25);
  loaded.Save(Path("again.keras"));
  EXPECT_FLOAT_EQ(static_cast<float>(LoadModel(Path("again.keras")).GetLearningRate()), 0.25f);
  model->SetLearningRate(0.25);
  EXPECT_EQ(Train(loaded, 2), Train(*model, 2));
  EXPECT_FLOAT_EQ(static_cast<float>(loaded.GetLearningRate()), 0.25f);
  EXPECT_EQ(Weights(loaded), Weights(*model)) << "the slots came from the file";
}

TEST_F(ModelSavingTest, WithoutHowItWasCompiled) {
  const auto model = Small();
  model->Save(Path("compiled.keras"));
  Model loaded = LoadModel(Path("compiled.keras"), {.compile = false});
  EXPECT_THROW(Train(loaded, 1), FailedPreconditionError);
  Sequential plain({Input(Shape{2}), Dense(1)});
  plain.Save(Path("plain.keras"));
  EXPECT_THROW(Train(LoadModel(Path("plain.keras")), 1), FailedPreconditionError);
  // A loss of the program's own: all but that is saved.
  plain.Compile({.optimizer = "sgd", .loss = LossFromFunction("own", [](const Output& t, const Output& p) {
                                       return ops::Mean(ops::Abs(ops::Sub(t, p)), {-1});
                                     })});
  ::testing::internal::CaptureStderr();
  plain.Save(Path("own.keras"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("'own'"), HasSubstr("Compile it")));
  EXPECT_EQ(Weights(LoadModel(Path("own.keras"))), Weights(plain));
}

TEST_F(ModelSavingTest, EveryLayerAndOption) {
  const Conv2DOptions conv = {
      .strides = {2, 1},
      .padding = "same",
      .groups = 2,
      .activation = "gelu",
      .use_bias = false,
      .kernel_initializer = initializers::VarianceScaling(2, ops::FanMode::kFanOut, ops::Distribution::kUniform, 5),
      .kernel_regularizer = regularizers::L1L2(0.1, 0.2),
      .name = "c",
      .trainable = false};
  Sequential model({Input(Shape{12, 12, 2}), Conv2D(4, {3, 2}, conv),
                    DepthwiseConv2D(2, {.depth_multiplier = 2, .depthwise_initializer = "he_normal"}),
                    SeparableConv2D(4, 2, {.dilation_rate = 2, .pointwise_regularizer = "l2"}),
                    MaxPooling2D({1, 2}, {.strides = RowsColumns(1)}), AveragePooling2D(2, {.padding = "same"}),
                    BatchNormalization({.momentum = 0.5, .scale = false, .synchronized = true}),
                    LayerNormalization({.epsilon = 0.1, .beta_initializer = initializers::Constant(2)}),
                    GlobalAveragePooling2D({.keepdims = true}), Activation("softsign"), Reshape({2, -1}), Flatten(),
                    Dropout(0.5, {.seed = 3}), Dense(5, {.bias_initializer = initializers::RandomNormal(1, 2, 3)})},
                   {.dtype_policy = "mixed_bfloat16"});
  model.Save(Path("all.keras"));
  Model loaded = LoadModel(Path("all.keras"));
  loaded.Save(Path("all2.keras"));
  EXPECT_EQ(ReadModelArchive(Path("all.keras")).config, ReadModelArchive(Path("all2.keras")).config);
  EXPECT_EQ(loaded.TrainableWeightNames(), model.TrainableWeightNames());
  const Tensor x = Counting(Shape{2, 12, 12, 2}, -1, 0.01f);
  EXPECT_EQ(loaded.Predict(x).ToVector<float>(), model.Predict(x).ToVector<float>());

  Sequential words({Input(Shape{3}, {.dtype = DType::kInt32}), Embedding(5, 2), Flatten(), Dense(1)});
  words.Save(Path("words.keras"));
  const Tensor w = Tensor::FromValues(std::vector<int32_t>{0, 1, 4}, Shape{1, 3});
  EXPECT_EQ(LoadModel(Path("words.keras")).Predict(w).ToVector<float>(), words.Predict(w).ToVector<float>());
}

TEST_F(ModelSavingTest, LayersThatPrepareImages) {
  Sequential model({Input(Shape{9, 12, 2}),
                    Resizing(8, 7, {.interpolation = "nearest", .pad_to_aspect_ratio = true, .fill_value = 0.5}),
                    Resizing(7, 8, {.crop_to_aspect_ratio = true}), CenterCrop(6, 7), RandomCrop(5, 5, {.seed = 1}),
                    RandomFlip("vertical", {.seed = 2}),
                    RandomContrast({0.1, 0.2}, {.value_range = {-3, 9}, .seed = 3}),
                    RandomBrightness(0.25, {.value_range = {-2, 8}, .seed = 4}),
                    RandomTranslation(0.5, {-0.25, 0.125}, {.fill_mode = "constant", .fill_value = 0.5}),
                    RandomRotation({0.125, 0.25}, {.fill_mode = "wrap", .interpolation = "nearest", .seed = 5}),
                    RandomZoom(0.5, FactorRange(-0.25, 0), {.fill_mode = "nearest"}), RandomZoom({-0.5, 1})});
  model.Save(Path("images.keras"));
  Model loaded = LoadModel(Path("images.keras"));
  loaded.Save(Path("images2.keras"));
  EXPECT_EQ(ReadModelArchive(Path("images.keras")).config, ReadModelArchive(Path("images2.keras")).config);
  const Tensor x = Counting(Shape{2, 9, 12, 2}, -1, 0.01f);
  EXPECT_EQ(loaded.Predict(x).ToVector<float>(), model.Predict(x).ToVector<float>());
}

TEST_F(ModelSavingTest, BranchesSharedLayersAndModelsInModels) {
  const LayerTensor a = Input(Shape{3}, {.name = "a"}), b = Input(Shape{3}, {.name = "b"});
  const LayerRef shared = Dense(3, {.activation = "tanh", .name = "shared"});
  const Sequential inner({Input(Shape{3}), Dense(4), Dense(3)}, {.name = "inner"});
  const LayerTensor left = shared(shared(a)), right = inner.AsLayer()(shared(b));
  Model model({a, b}, {Dense(1, {.name = "one"})(Add()({left, right})),
                       Dense(2, {.name = "two"})(Concatenate({.axis = 1})({left, b, right}))});
  model.Compile({.optimizer = "rmsprop", .loss = {"mse", Huber({.delta = 2})}, .loss_weights = {1, 0.5}});
  model.Save(Path("branches.keras"));
  Model loaded = LoadModel(Path("branches.keras"));
  EXPECT_EQ(loaded.WeightNames(), model.WeightNames());
  const ModelData x({Counting(Shape{2, 3}), Counting(Shape{2, 3}, 1, -0.5f)}, std::vector<Tensor>{});
  const std::vector<Tensor> mine = model.PredictAll(x), theirs = loaded.PredictAll(x);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(mine[i].ToVector<float>(), theirs[i].ToVector<float>());
  const ModelData data(x.x(), {Counting(Shape{2, 1}), Counting(Shape{2, 2})});
  EXPECT_EQ(loaded.Evaluate(data, {.verbose = 0}), model.Evaluate(data, {.verbose = 0}));
}

// As Keras counts the layers of one class: by their distance from the outputs, not in the order of the program.
TEST_F(ModelSavingTest, WeightsStandInTheOrderOfKeras) {
  const LayerTensor x = Input(Shape{2});
  const LayerTensor near = Dense(1, {.name = "near"})(x);
  const LayerTensor far = Dense(3, {.name = "far"})(x);
  Model model({x}, {Add()({near, Dense(1, {.name = "middle"})(far)})});
  model.SaveWeights(Path("order.weights.h5"));
  std::vector<std::string> named;
  for (const WeightGroup& group : DecodeWeights(ReadFile(Path("order.weights.h5")), "order")) {
    if (!group.values.empty()) named.push_back(StrCat(group.path, " ", group.values[0].shape()));
  }
  // far, near, middle.
  EXPECT_THAT(named, ElementsAre("layers/dense [2,3]", "layers/dense_1 [2,1]", "layers/dense_2 [3,1]"));
}

class Scale final : public Layer {
 public:
  explicit Scale(double by, const std::string& name = "", bool trainable = true)
      : Layer("Scale", name, trainable), by_(by) {}
  std::vector<WeightSpec> Build(const std::vector<LayerInput>&) const override {
    return {{.name = "factor", .shape = Shape{}, .initializer = "ones"}};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return {ctx.Call(*inner_, inputs[0] * ctx.weight("factor") * static_cast<float>(by_))};
  }
  ConfigValue::Object Config() const override { return {{"by", by_}}; }

 private:
  const double by_;
  const LayerRef inner_ = Dense(2);
};

TEST_F(ModelSavingTest, LayersOfTheProgramsOwn) {
  Sequential model({Input(Shape{2}), MakeLayer<Scale>(2), MakeLayer<Scale>(3)});
  model.Save(Path("own.keras"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LoadModel(Path("own.keras")); }),
              AllOf(HasSubstr("got a Scale (layer \"scale\")"), HasSubstr("Dense"), HasSubstr("custom_layers"),
                    HasSubstr("config.json of"), HasSubstr(Path("own.keras"))));
  Model loaded =
      LoadModel(Path("own.keras"), {.custom_layers = {{"Scale", [](const ConfigValue& config) {
                                                         return MakeLayer<Scale>(config.At("by").AsDouble(),
                                                                                 config.At("name").AsString());
                                                       }}}});
  EXPECT_EQ(loaded.WeightNames(), model.WeightNames());
  EXPECT_EQ(loaded.Predict(Counting(Shape{1, 2})).ToVector<float>(),
            model.Predict(Counting(Shape{1, 2})).ToVector<float>());
}

// A layer that does not say how it is made.
class Silent final : public Layer {
 public:
  explicit Silent(float by = 3) : Layer("Silent"), by_(by) {}
  Output Call(CallContext&, Output x) const override { return x * by_; }

 private:
  const float by_;
};

TEST_F(ModelSavingTest, ALayerThatIsMadeWithoutArgumentsNeedsNoConfig) {
  Sequential model({Input(Shape{2}), Dense(2), MakeLayer<Silent>()}, {.seed = 3});
  model.Save(Path("silent.keras"));
  const Model loaded = LoadModel(
      Path("silent.keras"), {.custom_layers = {{"Silent", [](const ConfigValue&) { return MakeLayer<Silent>(); }}}});
  EXPECT_EQ(Model(loaded).Predict(Counting(Shape{1, 2})).ToVector<float>(),
            model.Predict(Counting(Shape{1, 2})).ToVector<float>());

  Sequential options({Input(Shape{2}), Dense(1), MakeLayer<Silent>(2)});
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { options.Save(Path("options.keras")); }),
              AllOf(HasSubstr("Silent"), HasSubstr("Config()")));
  EXPECT_FALSE(FileExists(Path("options.keras")));
}

TEST_F(ModelSavingTest, ModelCheckpointFindsOutBeforeTheFirstStepThatALayerCannotBeSaved) {
  Sequential model({Dense(1), MakeLayer<Silent>(2)});
  model.Compile({.optimizer = "sgd", .loss = "mse"});
  FitOptions options = {.epochs = 1, .verbose = 0, .callbacks = {ModelCheckpoint({.filepath = Path("m.keras")})}};
  EXPECT_THAT(MessageOf<UnimplementedError>([&] {
                model.Fit(Counting(Shape{4, 2}), Counting(Shape{4, 1}), options);
              }),
              AllOf(HasSubstr("Silent"), HasSubstr("Config()")));
  EXPECT_EQ(model.Iterations(), 0);
  options.callbacks = {ModelCheckpoint({.filepath = Path("m.weights.h5"), .save_weights_only = true})};
  model.Fit(Counting(Shape{4, 2}), Counting(Shape{4, 1}), options);
  EXPECT_TRUE(FileExists(Path("m.weights.h5")));
}

TEST_F(ModelSavingTest, ASaveIntoAMissingFolderNamesThePathOfTheProgram) {
  const std::string message = MessageOf<NotFoundError>([&] { Small()->Save(Path("nope/m.keras")); });
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write '" + Path("nope/m.keras") + "'"), HasSubstr("make it first")));
}

// A model in a file has the name that Summary prints.
TEST_F(ModelSavingTest, AFunctionalModelWithoutANameIsCalledFunctional) {
  const LayerTensor x = Input(Shape{2});
  const Model inner({x}, {Dense(2)(x)}), other({x}, {Dense(2)(x)});
  inner.Save(Path("inner.keras"));
  EXPECT_THAT(ReadModelArchive(Path("inner.keras")).config, HasSubstr(R"("config": {"name": "functional")"));
  EXPECT_EQ(LoadModel(Path("inner.keras")).name(), "functional");
  std::ostringstream summary;
  LoadModel(Path("inner.keras")).Summary(summary);
  EXPECT_THAT(summary.str(), HasSubstr("Model: \"functional\""));
  // Inside another model they are still told apart.
  const LayerTensor y = Input(Shape{2});
  const Model outer({y}, {other.AsLayer()(inner.AsLayer()(y))}, {.name = "outer"});
  outer.Save(Path("outer.keras"));
  EXPECT_EQ(LoadModel(Path("outer.keras")).WeightNames(), outer.WeightNames());
}

TEST_F(ModelSavingTest, AFactoryNeedsNotToKnowNameAndTrainable) {
  Sequential model({Input(Shape{2}), MakeLayer<Scale>(2, "half", false)});
  model.Save(Path("own.keras"));
  const auto load = [&](const LayerFactory& factory) {
    return LoadModel(Path("own.keras"), {.custom_layers = {{"Scale", factory}}});
  };
  const LayerFactory factory = [](const ConfigValue& config) { return MakeLayer<Scale>(config.At("by").AsDouble()); };
  const Model loaded = load(factory);
  EXPECT_EQ(loaded.WeightNames(), model.WeightNames());
  EXPECT_FALSE(loaded.GetLayer("half").trainable());
  EXPECT_TRUE(loaded.TrainableWeightNames().empty());
  // Else the layer's weights would be called otherwise.
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { load([](const ConfigValue&) { return MakeLayer<Scale>(2, "other"); }); }),
      AllOf(HasSubstr("Scale"), HasSubstr("called 'half'; got one called 'other'"), HasSubstr(Path("own.keras"))));
}

// A short layer: Call declares its weight with its first use.
class Shift final : public Layer {
 public:
  Shift() : Layer("Shift") {}
  Output Call(CallContext& ctx, Output x) const override {
    return x + ctx.weight({.name = "by", .shape = Shape{x.shape().dim(1)}, .initializer = "ones"});
  }
  ConfigValue::Object Config() const override { return {}; }
};

TEST_F(ModelSavingTest, ARegisteredLayerIsMadeByEveryLoad) {
  RegisterAll();
  Sequential model({Input(Shape{2}), MakeLayer<Shift>(), Dense(2)}, {.seed = 3});
  EXPECT_EQ(model.WeightNames().at(0), "shift/by");
  model.SetWeights({Counting(Shape{2}), Counting(Shape{2, 2}), Counting(Shape{2})});
  model.Save(Path("shift.keras"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { LoadModel(Path("shift.keras")); }), HasSubstr("RegisterLayer"));
  const LayerFactory factory = [](const ConfigValue&) { return MakeLayer<Shift>(); };
  RegisterLayer("Shift", factory);
  EXPECT_EQ(LoadModel(Path("shift.keras")).Predict(Counting(Shape{1, 2})).ToVector<float>(),
            model.Predict(Counting(Shape{1, 2})).ToVector<float>());
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { RegisterLayer("Shift", factory); }),
              HasSubstr("'Shift', which is registered already"));
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { RegisterLayer("Dense", factory); }),
              HasSubstr("'Dense', which Keras has"));
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { RegisterLayer("Sequential", factory); }),
              HasSubstr("'Sequential', which Keras has"));
}

TEST_F(ModelSavingTest, WeightsAloneComeWithTheOptimizersState) {
  const auto model = Small();
  Train(*model, 3);
  model->SaveWeights(Path("w.weights.h5"));
  const auto other = Small("other");
  Train(*other, 1);
  other->LoadWeights(Path("w.weights.h5"));
  EXPECT_EQ(Weights(*other), Weights(*model));
  EXPECT_EQ(other->Iterations(), 3);
  EXPECT_EQ(Train(*other, 4), Train(*model, 4));
  // Into a model with another optimizer: the weights alone, and a warning.
  const auto sgd = Small();
  sgd->Compile({.optimizer = SGD({.momentum = 0.9}), .loss = "mse"});
  Train(*sgd, 1);
  ::testing::internal::CaptureStderr();
  sgd->LoadWeights(Path("w.weights.h5"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("begins anew"));
  EXPECT_EQ(sgd->Iterations(), 1);
}

TEST_F(ModelSavingTest, WeightsThatDoNotFitNameFileGroupAndLayer) {
  const auto model = Small();
  model->SaveWeights(Path("w.weights.h5"));
  model->Save(Path("m.keras"));
  Sequential wider({Input(Shape{2}), Dense(3), BatchNormalization(), Dense(2, {.name = "end"})});
  const std::vector<Floats> before = Weights(wider);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { wider.LoadWeights(Path("w.weights.h5")); }),
              AllOf(HasSubstr("kernel float32[3,2]"), HasSubstr("'layers/dense_1/vars'"), HasSubstr("layer 'end'"),
                    HasSubstr("float32[3,1]"), HasSubstr(Path("w.weights.h5"))));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { wider.LoadWeights(Path("m.keras")); }),
              AllOf(HasSubstr("model.weights.h5 of"), HasSubstr(Path("m.keras"))));
  EXPECT_EQ(Weights(wider), before);
  Sequential longer({Input(Shape{2}), Dense(3), BatchNormalization(), Dense(1), Dense(1)});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { longer.LoadWeights(Path("w.weights.h5")); }),
              AllOf(HasSubstr("'layers/dense_2/vars'"), HasSubstr("got none")));
  Sequential shorter({Input(Shape{2}), Dense(3), BatchNormalization()});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { shorter.LoadWeights(Path("w.weights.h5")); }),
              HasSubstr("float32[3,1], float32[1] in 'layers/dense_1/vars' beside them"));
}

TEST_F(ModelSavingTest, DamagedFilesNameThemselves) {
  const auto model = Small();
  model->Save(Path("m.keras"));
  const std::string whole = ReadFile(Path("m.keras"));
  for (const double share : {0.0, 0.3, 0.9, 0.999}) {
    std::ofstream(Path("cut.keras"), std::ios::binary)
        << whole.substr(0, static_cast<size_t>(share * static_cast<double>(whole.size())));
    EXPECT_THAT(MessageOf<DataLossError>([&] { LoadModel(Path("cut.keras")); }), HasSubstr(Path("cut.keras"))) << share;
    EXPECT_THAT(MessageOf<DataLossError>([&] { model->LoadWeights(Path("cut.keras")); }), HasSubstr("cut.keras"));
  }
  ModelArchive archive = ReadModelArchive(Path("m.keras"));
  const auto rewritten = [&](const std::function<void(ModelArchive&)>& change) {
    ModelArchive changed = archive;
    change(changed);
    WriteModelArchive(Path("changed.keras"), changed);
    return ErrorOf([&] { LoadModel(Path("changed.keras")); });
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    return rewritten([&](ModelArchive& changed) {
      ASSERT_NE(changed.config.find(from), std::string::npos) << from;
      changed.config.replace(changed.config.find(from), from.size(), to);
    });
  };
  EXPECT_THAT(rewritten([](ModelArchive& a) { a.keras_version = "4.0.0"; }),
              AllOf(HasSubstr("4.0.0"), HasSubstr("changed.keras")));
  EXPECT_THAT(rewritten([](ModelArchive& a) { a.config.resize(a.config.size() / 2); }),
              AllOf(HasSubstr("JSON"), HasSubstr("config.json of"), HasSubstr("changed.keras")));
  EXPECT_THAT(rewritten([](ModelArchive& a) { a.weights.resize(a.weights.size() / 2); }),
              AllOf(HasSubstr("DataLoss"), HasSubstr("model.weights.h5 of"), HasSubstr("changed.keras")));
  EXPECT_THAT(replaced("\"Dense\"", "\"ConvLSTM2D\""),
              AllOf(HasSubstr("LSTM"), HasSubstr("\"dense\""), HasSubstr("known are"), HasSubstr("config.json of")));
  EXPECT_THAT(replaced("\"units\": 3", "\"units\": \"many\""), AllOf(HasSubstr("many"), HasSubstr("config.json of")));
  EXPECT_THAT(replaced("\"units\": 3", "\"units\": 3, \"magic\": 1"), AllOf(HasSubstr("'magic'"), HasSubstr("Dense")));
  EXPECT_THAT(replaced("\"units\": 3", "\"units\": 4"),
              AllOf(HasSubstr("'layers/dense/vars'"), HasSubstr("model.weights.h5 of")));
  EXPECT_THAT(replaced("\"Adam\"", "\"Muon\""), AllOf(HasSubstr("Muon"), HasSubstr("config.json of")));
  EXPECT_THAT(replaced("\"class_name\": \"Sequential\"", "\"class_name\": \"MyModel\""),
              AllOf(HasSubstr("MyModel"), HasSubstr("LoadWeights")));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { LoadModel(Path("none.keras")); }), HasSubstr("none.keras"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model->Save(Path("m.h5")); }), HasSubstr(".keras"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model->SaveWeights(Path("m.h5")); }), HasSubstr(".weights.h5"));
  Sequential open({Dense(1)});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { open.Save(Path("open.keras")); }), HasSubstr("input shape"));
}

TEST_F(ModelSavingTest, FunctionalConfigurationsThatDoNotHangTogether) {
  const LayerTensor x = Input(Shape{2}, {.name = "x"});
  Model model({x}, {Dense(1, {.name = "end"})(Dense(2, {.name = "begin"})(x))});
  model.Save(Path("f.keras"));
  const ModelArchive archive = ReadModelArchive(Path("f.keras"));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    ModelArchive changed = archive;
    const size_t at = changed.config.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.config.replace(at, from.size(), to);
    WriteModelArchive(Path("changed.keras"), changed);
    return MessageOf<InvalidArgumentError>([&] { LoadModel(Path("changed.keras")); });
  };
  EXPECT_THAT(replaced("\"keras_history\": [\"x\", 0, 0]", "\"keras_history\": [\"y\", 0, 0]"), HasSubstr("'y'"));
  EXPECT_THAT(replaced("\"keras_history\": [\"x\", 0, 0]", "\"keras_history\": [\"end\", 0, 0]"),
              HasSubstr("2 calls do not"));
  EXPECT_THAT(replaced("\"keras_history\": [\"x\", 0, 0]", "\"keras_history\": [\"x\", 0, 3]"), HasSubstr("result 3"));
  EXPECT_THAT(replaced("\"output_layers\": [\"end\", 0, 0]", "\"output_layers\": [\"end\", 2, 0]"),
              HasSubstr("[\"end\", 2, 0]"));
  EXPECT_THAT(replaced("\"kwargs\": {}", "\"kwargs\": {\"training\": true}"), HasSubstr("training=true"));
  EXPECT_THAT(replaced("\"kwargs\": {}", "\"kwargs\": {\"flag\": false}"), HasSubstr("flag=false"));
}

// Each model calls the model inside of it twice, so the innermost layer is called 2^40 times.
TEST_F(ModelSavingTest, ModelsInModelsDoNotGrowWithoutEnd) {
  const auto value = [](const std::string& layer) {
    return R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 2], "dtype": "float32", "keras_history": [")" +
           layer + R"(", 0, 0]}})";
  };
  const auto layer = [](const std::string& object, const std::string& name, const std::vector<std::string>& arguments) {
    std::string text = object + R"(, "name": ")" + name + R"(", "inbound_nodes": [)";
    for (size_t i = 0; i < arguments.size(); ++i) {
      text += (i == 0 ? "" : ", ") + (R"({"args": [)" + arguments[i] + R"(], "kwargs": {}})");
    }
    return text + "]}";
  };
  std::string inner = R"({"class_name": "Activation", "config": {"activation": "relu"})";
  for (int depth = 0; depth < 40; ++depth) {
    const std::string input =
        layer(R"({"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [null, 2], "dtype": "float32"})",
              "i", {});
    inner = R"({"class_name": "Functional", "config": {"name": "m", "layers": [)" + input + ", " +
            layer(inner, "a", {value("i"), value("a")}) +
            R"(], "input_layers": [["i", 0, 0]], "output_layers": [["a", )" + (depth == 0 ? "1" : "2") + R"(, 0]]})";
  }
  WriteModelArchive(Path("nested.keras"), {.config = inner + "}", .weights = EncodeWeights({})});
  EXPECT_THAT(ErrorOf([&] { LoadModel(Path("nested.keras")); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("16384 layers")));
}

TEST_F(ModelSavingTest, ModelCheckpointWritesModelsAndWeights) {
  const auto model = Small();
  FitOptions options = {.batch_size = 2, .epochs = 2, .verbose = 0};
  options.callbacks = {
      ModelCheckpoint({.filepath = Path("e{epoch}.keras"), .monitor = "loss"}),
      ModelCheckpoint({.filepath = Path("e{epoch}.weights.h5"), .monitor = "loss", .save_weights_only = true})};
  model->Fit(Counting(Shape{4, 2}), Counting(Shape{4, 1}), options);
  Model first = LoadModel(Path("e1.keras")), second = LoadModel(Path("e2.keras"));
  EXPECT_EQ(first.Iterations(), 2);
  EXPECT_EQ(second.Iterations(), 4);
  EXPECT_EQ(Weights(second), Weights(*model));
  first.LoadWeights(Path("e2.weights.h5"));
  EXPECT_EQ(Weights(first), Weights(*model));
}

}  // namespace
}  // namespace cohort::keras
