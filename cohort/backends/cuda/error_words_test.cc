// Error words: what a check on the stream tells the step, and which updates it counts.
#include "cohort/backends/cuda/error_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/checks.cu.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::cuda {
namespace {

using ::testing::HasSubstr;

// One step, whose kernels the test plays.
struct Step {
  Step(Device& device, const Node& node, int64_t id) : ctx(node, device, info, slots, {}, slots, uses) {
    info.step_id = id;
    info.error = &error;
    info.cancellation = &cancellation;
  }
  CancellationManager cancellation;
  StepError error;
  StepInfo info;
  Tensor slots[1];
  int32_t uses[1] = {1};
  KernelContext ctx;
};

class ErrorWordsTest : public ::testing::Test {
 protected:
  ErrorWordsTest() {
    CudaDeviceOptions options;
    options.memory_limit = size_t{64} << 20;
    device_ = std::make_unique<CudaDevice>(
        CudaBackend::Get(), AttributesOf(DeviceName::Parse("/job:worker/task:0"), CudaBackend::Get().type(), 0),
        std::make_shared<TaskResources>(), driver_, options);
  }
  ErrorWords& words() { return device_->error_words(); }
  void Check(Step& step, const Tensor& values) {
    const ErrorWords::Check check = words().Announce(step.ctx, [](int64_t position, int64_t value) {
      return Status(Code::kInvalidArgument, StrCat("element ", position, " is ", value));
    });
    LaunchValueCheck(driver_, device_->compute_stream()->handle(), ValueCheck::kNotNegative, ElementType::kInt64,
                     values.raw_data(), values.num_elements(), check.word, check.number);
    words().Follow(step.ctx);
  }
  Tensor Good() { return device_->CopyFromHost(Tensor::Vector<int64_t>({1, 2, 3})); }
  Tensor Bad() { return device_->CopyFromHost(Tensor::Vector<int64_t>({1, 2, -7, -8})); }

  FakeDriver fake_;
  Driver& driver_ = CardOr(fake_);
  Graph graph_;
  const Node& node_ = *ops::Reciprocal(ops::Placeholder(graph_, DType::kInt64)).node;  // an op that may report
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(ErrorWordsTest, AStepWithoutChecksHasNoWord) {
  Step step(*device_, node_, 1);
  EXPECT_EQ(words().WordOf(step.ctx), nullptr);
  words().CountUpdate(step.ctx);
  EXPECT_EQ(step.error.updates_applied(), 1);
}

TEST_F(ErrorWordsTest, ABadValueBecomesTheErrorOfTheStepBeforeItsLastEventIsReached) {
  for (int round = 0; round < 100; ++round) {
    Step step(*device_, node_, round);
    Check(step, Good());
    Check(step, Bad());
    Check(step, Bad());
    device_->Synchronize();
    ASSERT_EQ(step.error.status().code(), Code::kInvalidArgument);
    ASSERT_THAT(step.error.status().message(), HasSubstr("element 2 is -7\n  [[Reciprocal"));
    ASSERT_EQ(words().WordOf(step.ctx), nullptr);  // the outcome is known
  }
}

// A value in memory that a plan gives to later work of the step.
TEST_F(ErrorWordsTest, TheValueIsTheOneThatWasCheckedAlsoIfLaterWorkOverwritesIt) {
  Step step(*device_, node_, 1);
  Tensor bad = Bad();
  Check(step, bad);
  driver_.FillAsync(bad.raw_data(), 0x11, bad.bytes(), device_->compute_stream()->handle());
  device_->Synchronize();
  EXPECT_THAT(step.error.status().message(), HasSubstr("element 2 is -7"));
}

TEST_F(ErrorWordsTest, WithoutPinnedMemoryTheCheckFailsAndTheNextOneDoesNot) {
  COHORT_NEEDS_FAKE("it fails when the test says so");
  Step step(*device_, node_, 1);
  const Tensor good = Good();
  fake_.control().FailPinnedAllocation(1);
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { Check(step, good); }), HasSubstr("pinned host memory"));
  device_->Synchronize();
  Step next(*device_, node_, 2);
  Check(next, Bad());
  device_->Synchronize();
  EXPECT_EQ(next.error.status().code(), Code::kInvalidArgument);
}

TEST_F(ErrorWordsTest, WithoutMemoryOfTheCardTheCheckFailsAndTheNextOneDoesNot) {
  COHORT_NEEDS_FAKE("it fails when the test says so");
  const Tensor good = Good();
  Step step(*device_, node_, 1);
  fake_.control().FailAllocation(1);
  EXPECT_THAT(MessageOf<ResourceExhaustedError>([&] { Check(step, good); }), HasSubstr("memory of card 0"));
  Check(step, Bad());
  device_->Synchronize();
  EXPECT_EQ(step.error.status().code(), Code::kInvalidArgument);
}

// The word of the check cannot be read any more. Each later event tries, and so does the end of the device.
TEST_F(ErrorWordsTest, ACardThatFailsBehindACheckFailsAllLaterEvents) {
  COHORT_NEEDS_FAKE("it fails when the test says so");
  Step step(*device_, node_, 1);
  const Tensor good = Good();
  const EventHandle event = driver_.MakeEvent(0, EventUse::kOrder);
  const StreamHandle stream = device_->compute_stream()->handle();
  Check(step, good);
  fake_.control().FailWork(0, 1);
  try {
    driver_.FillAsync(const_cast<void*>(good.raw_data()), 0, good.bytes(), stream);
    driver_.Record(event, stream);
    EXPECT_FALSE(driver_.Synchronize(event).ok());
  } catch (const InternalError&) {
    // The work of the check was the next one, and has failed already.
  }
  driver_.Destroy(0, event);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(MessageOf<InternalError>([&] { device_->Synchronize(); }), HasSubstr("illegal memory access"));
  }
}

TEST_F(ErrorWordsTest, OnlyTheUpdatesBeforeTheFailedCheckCount) {
  Step step(*device_, node_, 1);
  words().CountUpdate(step.ctx);
  Check(step, Good());
  words().CountUpdate(step.ctx);
  EXPECT_NE(words().WordOf(step.ctx), nullptr);
  Check(step, Bad());
  words().CountUpdate(step.ctx);
  words().CountUpdate(step.ctx);
  device_->Synchronize();
  EXPECT_EQ(step.error.updates_applied(), 2);
  EXPECT_FALSE(words().MayRun(step.ctx));
}

TEST_F(ErrorWordsTest, AllUpdatesCountIfTheChecksPass) {
  COHORT_NEEDS_FAKE("its card stands still until the test lets it go on");
  Step step(*device_, node_, 1);
  Check(step, Good());
  words().CountUpdate(step.ctx);
  fake_.control().Hold(0);
  const auto event = device_->compute_stream()->Record();
  words().CountUpdate(step.ctx);  // behind the reading
  fake_.control().Release(0);
  device_->Synchronize();
  EXPECT_EQ(step.error.updates_applied(), 2);
  EXPECT_TRUE(step.error.status().ok());
}

TEST_F(ErrorWordsTest, ACancelledStepThatHasUpdatesOnTheStreamGoesOn) {
  Step first(*device_, node_, 1);
  Check(first, Good());
  words().CountUpdate(first.ctx);  // not counted yet
  first.cancellation.Cancel(Status(Code::kCancelled, "cancelled"));
  EXPECT_TRUE(words().MayRun(first.ctx));
  Step second(*device_, node_, 2);
  Check(second, Good());
  second.cancellation.Cancel(Status(Code::kCancelled, "cancelled"));
  EXPECT_FALSE(words().MayRun(second.ctx));
  device_->Synchronize();
  EXPECT_TRUE(first.error.status().ok());
  EXPECT_EQ(second.error.status().code(), Code::kCancelled);
}

// Another thread may record an event, whose callback takes the outcome, while an update is being enqueued.
TEST_F(ErrorWordsTest, AHeldWordStaysTheStepsUntilTheUpdateIsEnqueued) {
  const Tensor good = Good(), bad = Bad();
  Step first(*device_, node_, 1), second(*device_, node_, 2);
  Check(first, good);
  const ErrorWord* const held = words().Hold(first.ctx);
  ASSERT_NE(held, nullptr);
  device_->Synchronize();  // the outcome is known
  EXPECT_EQ(words().WordOf(first.ctx), held);
  Check(second, bad);
  EXPECT_NE(words().WordOf(second.ctx), held);
  words().CountUpdate(first.ctx);
  words().Release(first.ctx);
  EXPECT_EQ(words().WordOf(first.ctx), nullptr);
  EXPECT_EQ(first.error.updates_applied(), 1);
  device_->Synchronize();
  EXPECT_TRUE(second.error.set());
}

TEST_F(ErrorWordsTest, AFailedStepGivesNoWordToUpdates) {
  const Tensor bad = Bad();
  Step step(*device_, node_, 1);
  Check(step, bad);
  const ErrorWord* const held = words().Hold(step.ctx);
  device_->Synchronize();
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { words().Hold(step.ctx); }), HasSubstr("element 2 is -7"));
  EXPECT_EQ(words().WordOf(step.ctx), held);
  words().CountUpdate(step.ctx);
  words().Release(step.ctx);
  EXPECT_EQ(words().WordOf(step.ctx), nullptr);
  EXPECT_EQ(step.error.updates_applied(), 0);
}

// Two steps at a time, and a check that another step's event comes before.
TEST_F(ErrorWordsTest, StepsHaveWordsOfTheirOwn) {
  Step one(*device_, node_, 1);
  Step two(*device_, node_, 2);
  const Tensor bad = Bad();
  const ErrorWords::Check announced =
      words().Announce(two.ctx, [](int64_t, int64_t) { return Status(Code::kOutOfRange, "of the second"); });
  Check(one, Good());
  device_->Synchronize();  // the end of the first step
  LaunchValueCheck(driver_, device_->compute_stream()->handle(), ValueCheck::kNotNegative, ElementType::kInt64,
                   bad.raw_data(), bad.num_elements(), announced.word, announced.number);
  words().Follow(two.ctx);
  device_->Synchronize();
  EXPECT_TRUE(one.error.status().ok());
  EXPECT_EQ(two.error.status().code(), Code::kOutOfRange);
}

TEST_F(ErrorWordsTest, AWordIsCleanForTheNextStep) {
  {
    Step step(*device_, node_, 1);
    Check(step, Bad());
    device_->Synchronize();
    EXPECT_FALSE(step.error.status().ok());
  }
  Step step(*device_, node_, 2);
  Check(step, Good());
  device_->Synchronize();
  EXPECT_TRUE(step.error.status().ok());
}

TEST_F(ErrorWordsTest, AStepThatKeepsNoErrorsCannotCheck) {
  Step step(*device_, node_, 1);
  step.info.error = nullptr;
  EXPECT_THAT(MessageOf<InternalError>([&] { Check(step, Good()); }), HasSubstr("keeps errors of its streams"));
}

}  // namespace
}  // namespace cohort::cuda
