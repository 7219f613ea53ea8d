#include "cohort/runtime/step_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// A task whose steps end when a test calls End.
class TaskThatIsEnded final : public TaskClient {
 public:
  const std::string& name() const override { return name_; }
  const std::vector<DeviceAttributes>& devices() const override { return devices_; }
  void Register(ExecutableSpec) override {}
  void StartStep(const ExecutableKey&, const StepStart&, std::vector<Tensor>, Executor::Mode, StepDone done) override {
    done_ = std::move(done);
  }
  void CancelStep(const ExecutableKey&, int64_t, const Status&) override {}
  StepReport AskAboutStep(const ExecutableKey&, int64_t, bool, std::chrono::steady_clock::time_point) override {
    return report_;
  }
  void CloseSession(uint64_t) override {}
  void ResetContainer(const std::string&) override {}

  void End(const Status& status, std::vector<Tensor> rets = {}) {
    std::exchange(done_, nullptr)(status, std::move(rets));
  }

 private:
  const std::string name_ = "/job:worker/replica:0/task:1";
  const std::vector<DeviceAttributes> devices_{};
  StepDone done_;
  StepReport report_;
};

class StepCallTest : public ::testing::Test {
 protected:
  StepCallTest() { prepared_.parts.push_back({task_, {1, 1}, {}, {}}); }

  std::shared_ptr<StepCall> Start(StepCall::Done done) {
    auto call = std::make_shared<StepCall>(prepared_, 1, StepLimits(), std::move(done));
    call->Start(FeedList(), Executor::Mode::kDevice);
    return call;
  }

  const std::shared_ptr<TaskThatIsEnded> task_ = std::make_shared<TaskThatIsEnded>();
  PreparedSignature prepared_;
  const Status closed_{Code::kCancelled, "the session was closed"};
};

// A task in another process may answer with any number of results.
TEST_F(StepCallTest, AWrongNumberOfResultsFailsTheStep) {
  Status outcome;
  const auto call = Start([&outcome](const Status& status, const std::vector<Tensor>&) { outcome = status; });
  task_->End(Status(), {Tensor::Scalar(1.0f)});
  EXPECT_EQ(outcome.code(), Code::kDataLoss);
  EXPECT_NE(outcome.message().find("expected 0 results of step 1 from /job:worker/replica:0/task:1; got 1"),
            std::string::npos)
      << outcome.message();
}

// The session may be freed after Abandon, and its graph, which `done` reads.
TEST_F(StepCallTest, AbandonWaitsForADoneThatIsRunning) {
  std::promise<void> entered;
  std::promise<void> go_on;
  Status outcome;
  const auto call = Start([&](const Status& status, const std::vector<Tensor>&) {
    entered.set_value();
    go_on.get_future().wait_for(minutes(1));
    outcome = status;
  });
  auto network = std::async(std::launch::async, [&] { task_->End(Status(Code::kUnavailable, "lost")); });
  ASSERT_EQ(entered.get_future().wait_for(minutes(1)), std::future_status::ready);
  auto abandoned = std::async(std::launch::async, [&] { call->Abandon(closed_); });
  EXPECT_EQ(abandoned.wait_for(milliseconds(50)), std::future_status::timeout);
  go_on.set_value();
  ASSERT_EQ(abandoned.wait_for(minutes(1)), std::future_status::ready);
  EXPECT_EQ(outcome.message(), "lost");
}

TEST_F(StepCallTest, DoneMayAbandonItsOwnStep) {
  std::weak_ptr<StepCall> self;
  int calls = 0;
  auto call = Start([&](const Status&, const std::vector<Tensor>&) {
    ++calls;
    self.lock()->Abandon(closed_);
  });
  self = call;
  task_->End(Status());
  call->Abandon(closed_);
  EXPECT_EQ(calls, 1);
}

TEST_F(StepCallTest, AnAbandonedStepIgnoresWhatComesLater) {
  std::vector<std::string> outcomes;
  const auto call =
      Start([&](const Status& status, const std::vector<Tensor>&) { outcomes.push_back(status.message()); });
  call->Abandon(closed_);
  task_->End(Status(Code::kUnavailable, "lost"));
  EXPECT_EQ(outcomes, std::vector<std::string>{"the session was closed"});
}

}  // namespace
}  // namespace cohort
