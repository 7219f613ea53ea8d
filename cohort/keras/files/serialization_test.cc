#include "cohort/keras/files/serialization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SerializationTest, EverythingComesBackAsItWas) {
  for (const LossPtr& loss :
       {SparseCategoricalCrossentropy({.from_logits = true}),
        CategoricalCrossentropy({.label_smoothing = 0.25}),
        BinaryCrossentropy({.from_logits = true, .name = "mine"}),
        MeanSquaredError({.reduction = Reduction::kSum}),
        MeanAbsoluteError({.reduction = Reduction::kMeanWithSampleWeight}),
        Huber({.delta = 3}),
        MeanAbsolutePercentageError({.name = "mine"}),
        MeanSquaredLogarithmicError(),
        LogCosh(),
        Poisson(),
        Hinge(),
        SquaredHinge({.reduction = Reduction::kSum}),
        CosineSimilarity({.name = "c"}),
        KLDivergence({.reduction = Reduction::kMeanWithSampleWeight}),
        CategoricalHinge({.name = "h"}),
        BinaryFocalCrossentropy({.apply_class_balancing = true, .alpha = 0.5, .gamma = 3, .label_smoothing = 0.5}),
        CategoricalFocalCrossentropy({.alpha = 0.5, .gamma = 1, .from_logits = true}),
        Dice(),
        Dice({.axis = {-1}}),
        Tversky({.alpha = 0.25, .beta = 2, .axis = {1, 2}})}) {
    EXPECT_EQ(DeserializeLoss(loss->Serialized())->Serialized().ToJson(), loss->Serialized().ToJson());
  }
  for (const MetricPtr& metric :
       {Accuracy(),
        BinaryAccuracy("b", 0.25),
        CategoricalAccuracy("c"),
        SparseCategoricalAccuracy(),
        TopKCategoricalAccuracy(3),
        SparseTopKCategoricalAccuracy(2, "s"),
        Mean(),
        AUC({.num_thresholds = 20}),
        Precision(),
        Precision({.thresholds = 0.25, .class_id = 2, .name = "p"}),
        Recall({.thresholds = 0}),
        RootMeanSquaredError("r"),
        TruePositives(),
        FalsePositives({.thresholds = 0.25}),
        TrueNegatives({.name = "n"}),
        FalseNegatives(),
        PrecisionAtRecall(0.5),
        RecallAtPrecision(0.5, {.num_thresholds = 9, .class_id = 1}),
        SensitivityAtSpecificity(0.25),
        SpecificityAtSensitivity(0.75, {.name = "s"}),
        F1Score({.average = "macro"}),
        FBetaScore({.average = "weighted", .beta = 2, .threshold = 0.25}),
        IoU(3, {0, 2}, {.ignore_class = 1}),
        MeanIoU(3, {.sparse_y_true = false}),
        OneHotIoU(3, {1}),
        OneHotMeanIoU(3, {.sparse_y_pred = true}),
        BinaryIoU({.target_class_ids = {1}, .threshold = 0.25}),
        R2Score({.class_aggregation = "variance_weighted_average", .num_regressors = 2}),
        AUC({.curve = Curve::kPr, .summation_method = SummationMethod::kMinoring, .thresholds = {0.5, 0.25}})}) {
    EXPECT_EQ(DeserializeMetric(metric->Serialized()).Serialized().ToJson(), metric->Serialized().ToJson());
  }
  for (const char* name : {"MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError",
                           "MeanSquaredLogarithmicError", "LogCoshError", "Hinge", "SquaredHinge", "CategoricalHinge",
                           "KLDivergence", "Poisson", "CosineSimilarity", "RootMeanSquaredError"}) {
    const ConfigValue value = SerializedObject("keras.metrics", name, {{"name", "m"}, {"dtype", "float32"}});
    EXPECT_EQ(DeserializeMetric(value).Serialized().ToJson(), value.ToJson());
  }
  EXPECT_EQ(DeserializeMetric("accuracy").Serialized().ToJson(), "\"accuracy\"");
  for (const OptimizerPtr& optimizer :
       {SGD({.momentum = 0.5, .nesterov = true, .clipnorm = 2.0}), Adagrad({.epsilon = 0.5, .weight_decay = 0.25}),
        Adam({.learning_rate = ExponentialDecay({0.1, 10, 0.5, true}), .amsgrad = true}), Adam({.lazy = true}),
        AdamW({.learning_rate = CosineDecay({0.1, 10, 0.5, 1.0, 5}), .beta_1 = 0.5}),
        RMSprop({.learning_rate = PiecewiseConstantDecay({3}, {1, 2}), .centered = true}),
        RMSprop({.learning_rate = PolynomialDecay({.initial_learning_rate = 1, .decay_steps = 2, .cycle = true})}),
        Ftrl({.learning_rate = InverseTimeDecay({0.1, 10, 0.5}), .beta = 0.5, .global_clipnorm = 1.0}),
        Nadam({.beta_1 = 0.5, .epsilon = 0.25}), Adamax({.beta_2 = 0.5, .clipnorm = 1.0}),
        Lion({.beta_1 = 0.5, .beta_2 = 0.25, .weight_decay = 0.5}), Adadelta({.rho = 0.5, .epsilon = 0.25})}) {
    EXPECT_EQ(DeserializeOptimizer(optimizer->Serialized())->Serialized().ToJson(), optimizer->Serialized().ToJson());
  }
  EXPECT_EQ(DeserializeOptimizer("adam")->name(), "adam");
  EXPECT_EQ(DeserializeLoss("mse")->name(), "mean_squared_error");
}

TEST(SerializationTest, WhatCannotBeReadIsNamed) {
  const auto message = [](const char* text) {
    return MessageOf<InvalidArgumentError>([&] { DeserializeOptimizer(ConfigValue::FromJson(text)); });
  };
  EXPECT_THAT(message(R"({"class_name": "Muon", "config": {}})"), AllOf(HasSubstr("'Muon'"), HasSubstr("Adam, AdamW")));
  EXPECT_THAT(message(R"({"class_name": "Adam", "config": {"use_ema": 3}})"),
              HasSubstr("use_ema of the optimizer Adam"));
  EXPECT_THAT(message(R"({"class_name": "Adam", "config": {"beta_3": 1}})"), HasSubstr("'beta_3'"));
  EXPECT_THAT(message(R"({"class_name": "Adam", "config": {"beta_1": "x"}})"), HasSubstr("beta_1 of the optimizer"));
  EXPECT_THAT(message(R"({"class_name": "Adam"})"), HasSubstr("'config'"));
  const auto precision = [](const ConfigValue& thresholds, const ConfigValue& top_k) {
    return DeserializeMetric(
        SerializedObject("keras.metrics", "Precision", {{"thresholds", thresholds}, {"top_k", top_k}}));
  };
  EXPECT_EQ(precision(ConfigValue::List{0.25}, {}).Serialized().ToJson(),
            Precision({.thresholds = 0.25})->Serialized().ToJson());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                precision(ConfigValue::List{0.25, 0.5}, {});
              }),
              AllOf(HasSubstr("one threshold"), HasSubstr("got 2"), HasSubstr("thresholds of the metric Precision")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { precision({}, 3); }), HasSubstr("top_k of the metric Precision"));
  EXPECT_THROW(DeserializeLoss(3), InvalidArgumentError);
  const LossPtr own = LossFromFunction("own", [](const Output& t, const Output&) { return t; });
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { own->Serialized(); }), HasSubstr("'own'"));
  EXPECT_THROW(MeanOf("own", [](const Output& t, const Output&) { return t; })->Serialized(), UnimplementedError);
  EXPECT_THROW(SGD({.learning_rate = ScheduleFromFunction("own", [](Output i) { return i; })})->Serialized(),
               UnimplementedError);
}

}  // namespace
}  // namespace cohort::keras
