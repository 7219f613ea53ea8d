#include "cohort/train/session/training_record.h"

#include <gtest/gtest.h>

#include <string>

#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"

namespace cohort::train {
namespace {

struct Described {
  explicit Described(bool second = false, const Shape& shape = Shape{2}) {
    RegisterAll();
    ops::GetOrCreateGlobalStep(graph);
    ops::GetVariable(graph, "w", shape, DType::kFloat32, initializers::Zeros());
    if (second) ops::GetVariable(graph, "second", Shape{}, DType::kFloat32, initializers::Zeros());
  }
  std::string text() const { return DescribeTraining(graph); }
  Graph graph;
};

std::string Difference(const Described& worker, const Described& chief) {
  return DifferenceOfTrainings(worker.text(), "WORKER", chief.text(), "CHIEF").value_or("none");
}

TEST(TrainingRecordTest, EqualTrainingsAgree) {
  EXPECT_EQ(Difference(Described(), Described()), "none");
  Described a, b;
  AddTrainingSetting(a.graph, "the k", 3);
  AddTrainingSetting(b.graph, "the k", 3);
  EXPECT_EQ(Difference(a, b), "none");
}

TEST(TrainingRecordTest, DifferencesNameBothValuesAndBothTasks) {
  EXPECT_EQ(Difference(Described(false, Shape{2}), Described(false, Shape{3})),
            "trained variable w is float32[2] in WORKER and float32[3] in CHIEF");
  EXPECT_EQ(Difference(Described(true), Described()),
            "trained variable second is float32[] in WORKER and missing in CHIEF");
  EXPECT_EQ(Difference(Described(), Described(true)),
            "trained variable second is missing in WORKER and float32[] in CHIEF");
  Described a, b;
  AddTrainingSetting(a.graph, "the k", 3);
  EXPECT_EQ(Difference(a, b), "the k is 3 in WORKER and missing in CHIEF");
  EXPECT_EQ(Difference(b, a), "the k is missing in WORKER and 3 in CHIEF");
  AddTrainingSetting(b.graph, "the k", 4);
  EXPECT_EQ(Difference(a, b), "the k is 3 in WORKER and 4 in CHIEF");
}

TEST(TrainingRecordTest, OnlyTheChiefMayHaveFurtherVariablesThatAreNotTrained) {
  Described with, without;
  VariableRequest request{.name = "mean", .shape = Shape{}, .trainable = false};
  request.initial_value = [&] { return ops::Const(with.graph, 0.0f); };
  ops::MakeVariable(with.graph, request);
  EXPECT_EQ(Difference(without, with), "none");
  EXPECT_EQ(Difference(with, without), "variable mean is float32[] in WORKER and missing in CHIEF");
}

}  // namespace
}  // namespace cohort::train
