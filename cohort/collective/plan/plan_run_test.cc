#include "cohort/collective/plan/plan_run.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "cohort/collective/testing/group_harness.h"

namespace cohort::collective {
namespace {

// A host whose group is closed: it runs work on the calling thread, as GroupCore does then.
class ClosedHost final : public EngineHost {
 public:
  const GroupOptions& options() const override { return options_; }
  const MemberList& members() const override { return members_; }
  Status status() const override { return {}; }
  std::shared_ptr<Device> device(int) const override { return nullptr; }
  Status WhyGone(int) const override { return {}; }
  void Fail(const Status&) override {}
  void Post(DataMessage, Tensor) override {}
  void RunOnWorker(std::function<void()> work) override { work(); }
  bool SchedulesAgree(int, uint64_t, int, uint64_t) override { return true; }
  void Watch(const std::shared_ptr<UnfinishedCollective>&, std::chrono::milliseconds) override {}
  void SendFarewell(int) override {}

 private:
  const GroupOptions options_{};
  const MemberList members_{1, {DeviceName::Parse("/device:CPU:0")}, ""};
};

// The run has to call the host without its lock, because the work locks it too.
TEST(PlanRunTest, ALargeCallThatBeginsWhileTheGroupClosesEnds) {
  RegisterAll();
  // The thread shares what it uses, because a run that locks itself never ends.
  const auto host = std::make_shared<ClosedHost>();
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> end = ended->get_future();
  std::thread caller([host, ended] {
    const auto run = std::make_shared<PlanRun>(*host, Reductions::Global().Find(kHostDeviceType), 0, CallId{}, [] {});
    CollectiveCall call;
    call.rank = 0;
    call.signature = {CallKind::kAllReduce, ReduceOp::kSum, Algorithm::kRing, 0, DType::kFloat32, Shape{1 << 16}};
    call.input = Tensor::Zeros(DType::kFloat32, Shape{1 << 16});
    call.output_shape = call.input.shape();
    call.done = [ended](const Status& status, Tensor) { ended->set_value(status); };
    run->Start(std::move(call), std::make_shared<const Plan>());
  });
  if (end.wait_for(testing::kPatience) != std::future_status::ready) {
    caller.detach();
    FAIL() << "the call has not ended within a minute";
  }
  caller.join();
  EXPECT_EQ(end.get().code(), Code::kOk);
}

}  // namespace
}  // namespace cohort::collective
