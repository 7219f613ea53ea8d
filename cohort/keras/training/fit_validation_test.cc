// What Fit validates with, and when. Expected values follow from Keras's documentation of Model.fit: validation takes
// the first `validation_steps` batches, each time from the start of the data, in its own batch size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BatchCounter final : public Callback {
 public:
  explicit BatchCounter(std::vector<int>* batches) : batches_(*batches) {}
  void OnTestBegin() override { batches_.push_back(0); }
  void OnTestBatchEnd(int64_t, const BatchLogs&) override { ++batches_.back(); }

 private:
  std::vector<int>& batches_;
};

auto ThreeTimes(double value) {
  const auto near = ::testing::DoubleNear(value, 1e-5);
  return ElementsAre(near, near, near);
}

// y = x with targets 0, which stays: the loss of examples is the mean of their squares.
class FitValidationTest : public ::testing::Test {
 protected:
  FitValidationTest() { model.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"}); }

  // What three epochs report; `batches` then has the number of batches of each validation.
  History Run(FitOptions options) {
    batches.clear();
    options.batch_size = 4;
    options.epochs = 3;
    options.verbose = 0;
    options.signal_check = false;
    options.callbacks = {std::make_shared<BatchCounter>(&batches)};
    return model.Fit(Squares(8), options);
  }
  std::vector<double> Validate(const FitOptions& options) { return Run(options)["val_loss"]; }
  // x = 0, 1, ..., count - 1.
  static ModelData Squares(int64_t count) {
    return {Counting(Shape{count, 1}), Tensor::Zeros(DType::kFloat32, Shape{count, 1})};
  }
  static data::Dataset BatchesOf(int64_t count, int64_t size) {
    return data::Dataset::FromTensorSlices({Squares(count).x()[0], Squares(count).y()[0]}).Batch(size);
  }

  Sequential model{{Input(Shape{1}), Dense(1, {.kernel_initializer = "ones"})}};
  std::vector<int> batches;
};

TEST_F(FitValidationTest, StepsTakeTheSameFirstBatchesEachEpoch) {
  for (const ModelData& data : {Squares(6), ModelData(BatchesOf(6, 2)), ModelData(BatchesOf(6, 2).Repeat())}) {
    EXPECT_THAT(Validate({.validation_data = data, .validation_steps = 2, .validation_batch_size = 2}),
                ThreeTimes(3.5));  // (0 + 1 + 4 + 9) / 4
    EXPECT_THAT(batches, ElementsAre(2, 2, 2));
  }
}

TEST_F(FitValidationTest, WithoutStepsAllOfTheDataIsTaken) {
  EXPECT_THAT(Validate({.validation_data = Squares(3)}), ThreeTimes(5.0 / 3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Validate({.validation_data = BatchesOf(6, 2).Repeat()}); }),
              AllOf(HasSubstr("fit (validation)"), HasSubstr("validation_steps")));
}

TEST_F(FitValidationTest, MoreStepsThanThereAreBatchesAreAWarning) {
  ::testing::internal::CaptureStderr();
  const std::vector<double> losses = Validate({.validation_data = BatchesOf(6, 2), .validation_steps = 5});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("ran out of data after 3 of 5 steps"));
  EXPECT_THAT(batches, ElementsAre(3, 3, 3));
  EXPECT_THAT(losses, ThreeTimes(55.0 / 6));
}

TEST_F(FitValidationTest, TheBatchSizeIsItsOwnAndChangesNoValue) {
  const auto count = [&](int64_t size) {
    // An uneven last batch counts by its examples.
    EXPECT_THAT(Validate({.validation_data = Squares(9), .validation_batch_size = size}), ThreeTimes(204.0 / 9))
        << size;
    return batches.front();
  };
  EXPECT_EQ(count(0), 3);  // that of training, 4
  EXPECT_EQ(count(1), 9);
  EXPECT_EQ(count(5), 2);
  EXPECT_EQ(count(100), 1);
}

TEST_F(FitValidationTest, DatasetsKeepTheirBatchesAndASplitTakesTheSize) {
  Validate({.validation_data = BatchesOf(6, 2), .validation_batch_size = 3});
  EXPECT_THAT(batches, ElementsAre(3, 3, 3));
  EXPECT_THAT(Validate({.validation_split = 0.5, .validation_steps = 3, .validation_batch_size = 1}),
              ThreeTimes(77.0 / 3));  // 4, 5 and 6 of 4 to 7
  EXPECT_THAT(batches, ElementsAre(3, 3, 3));
}

TEST_F(FitValidationTest, WithoutValidationDataTheyMeanNothing) {
  EXPECT_FALSE(Run({.validation_steps = 2, .validation_batch_size = 3}).Has("val_loss"));
  EXPECT_THAT(batches, IsEmpty());
}

}  // namespace
}  // namespace cohort::keras
