// Recorded steps of an executor whose device, variables and update gate the test can reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/testing/session_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/update_observer.h"
#include "cohort/graph/rows_may_be_none.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/execution/executor.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A plan that adds its argument to the variable "v" of two elements, and returns the new value times 2.
class RecordedPlanTest : public CardsTest {
 protected:
  RecordedPlanTest() {
    DeviceRequest request;
    request.task = DeviceName::Parse("/job:localhost/replica:0/task:0");
    request.count = 1;
    request.resources = task_;
    device_ = std::move(CudaBackend::Get().MakeDevices(request)[0]);
    executor_ = Compile();
    Assign({0, 0});
  }

  std::unique_ptr<Executor> Compile() {
    auto graph = std::make_unique<Graph>();
    Graph& g = *graph;
    const Output x =
        g.Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 0).Attr("shape", Shape{2}).Name("x").Finish1();
    const Output handle = ops::VarHandleOp(g, DType::kFloat32, Shape{2}, "v");
    Node* const add = ops::AssignAddVariableOp(handle, x, "add");
    const ControlDependencies after(g, {add});
    const Output twice = ops::ReadVariableOp(handle) * 2.0f;
    g.Op("_Retval").Input(twice).Attr("index", 0).Finish();
    return std::make_unique<Executor>(std::move(graph), *device_);
  }
  CudaDevice& device() { return static_cast<CudaDevice&>(*device_); }
  std::shared_ptr<VariableResource> Variable() {
    return task_->resources.LookupOrCreate<VariableResource>("", "v", [&] {
      return std::make_shared<VariableResource>("v", DType::kFloat32, Shape{2}, device_->allocator());
    });
  }
  void Assign(const std::vector<float>& values) { Variable()->Assign(device_->CopyFromHost(Tensor::Vector(values))); }
  std::vector<float> Value() { return device_->CopyToHost(Variable()->Read()).ToVector<float>(); }

  // Runs a step. Throws its error.
  void RunStep(std::vector<Tensor> args, std::span<Tensor> rets = {}, ClosureId closure = {}) {
    CancellationManager cancellation;
    StepInfo info{++step_, nullptr, &cancellation, args, rets};
    info.closure = closure;
    std::promise<Status> ended;
    executor_->RunAsync(info, Executor::Mode::kInline, [&](const Status& status) { ended.set_value(status); });
    ended.get_future().get().ThrowIfError();
  }
  // Runs a step that adds (1, 10).
  std::vector<float> Run(ClosureId closure = {}) {
    std::vector<Tensor> rets(1);
    RunStep({Tensor::Vector<float>({1, 10})}, rets, closure);
    return rets[0].ToVector<float>();
  }
  int64_t GraphsOf(const std::function<void()>& work) {
    const int64_t before = counts_->graph_launches();
    work();
    return counts_->graph_launches() - before;
  }
  void RunRecorded() {
    for (int i = 0; i < 3; ++i) Run();
    ASSERT_EQ(GraphsOf([&] { Run(); }), 1);
  }

  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>();
  std::unique_ptr<Device> device_;
  std::unique_ptr<Executor> executor_;
  int64_t step_ = 0;
};

TEST_F(RecordedPlanTest, AClearedContainerDropsTheGraphs) {
  RunRecorded();
  std::weak_ptr<VariableResource> old = Variable();
  task_->resources.Clear("");
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { Run(); }), HasSubstr("uninitialized value v"));
  EXPECT_TRUE(old.expired());
  Assign({5, 6});
  EXPECT_THAT(Run(), ElementsAre(12, 32));
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(14, 52)); }), 1);
}

TEST_F(RecordedPlanTest, AVariableThatWasAssignedAnewDropsTheGraphs) {
  RunRecorded();
  const Tensor held = Variable()->Read();
  Assign({5, 6});
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(12, 32)); }), 1);
  EXPECT_THAT(device_->CopyToHost(held).ToVector<float>(), ElementsAre(4, 40));
}

// The held value must stay. The step is launched, and writes to another place.
TEST_F(RecordedPlanTest, AValueThatSomebodyHoldsIsNotOverwritten) {
  RunRecorded();
  Tensor held = Variable()->Read();
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(10, 100)); }), 0);
  EXPECT_THAT(device_->CopyToHost(held).ToVector<float>(), ElementsAre(4, 40));
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(12, 120)); }), 1);
}

TEST_F(RecordedPlanTest, UpdatesCountAsOfLaunchedSteps) {
  RunRecorded();
  const int64_t before = Variable()->version();
  Run();
  EXPECT_EQ(Variable()->version(), before + 1);
}

// Each attempt of a closure is launched, so that an update of it is made once.
TEST_F(RecordedPlanTest, StepsOfAClosureAreLaunched) {
  RunRecorded();
  const ClosureId closure{7, 1, 1};
  EXPECT_EQ(GraphsOf([&] { Run(closure); }), 0);
  EXPECT_THAT(Value(), ElementsAre(5, 50));
  EXPECT_EQ(GraphsOf([&] { Run(closure); }), 0);
  EXPECT_THAT(Value(), ElementsAre(5, 50));
}

TEST_F(RecordedPlanTest, ObservedUpdatesAreLaunched) {
  class Observer final : public UpdateObserver {
   public:
    void OnUpdates(UpdateSet set) override { updates += set.updates.size(); }
    size_t updates = 0;
  };
  RunRecorded();
  const auto observer = std::make_shared<Observer>();
  task_->update_gate.SetObserver(observer, std::chrono::minutes(1));
  EXPECT_EQ(GraphsOf([&] { Run(); }), 0);
  EXPECT_EQ(observer->updates, 1u);
  task_->update_gate.SetObserver(nullptr, std::chrono::minutes(1));
  EXPECT_EQ(GraphsOf([&] { Run(); }), 1);
}

// The backend sums repeated rows without making them fewer. An observer gets what any kernel of the op understands.
TEST_F(RecordedPlanTest, AnObserverGetsOnlyPositionsThatAreRows) {
  auto graph = std::make_unique<Graph>();
  Graph& g = *graph;
  const Output ids = ops::Identity(ops::Const(g, std::vector<int32_t>{1, 1, 0}));
  const Output rows = ops::Identity(ops::Const(g, std::vector<float>{1, 2, 4}));
  const ops::UniqueResult unique = ops::Unique(ids);
  const Output sums = ops::UnsortedSegmentSum(rows, unique.idx, ops::Size(unique.y));
  ops::ResourceScatterSub(ops::VarHandleOp(g, DType::kFloat32, Shape{2}, "v"), unique.y, sums, "update");
  graph = CudaBackend::Get().Improve(std::move(graph));
  ASSERT_TRUE(graph->FindNode("update")->has_attr(kRowsMayBeNone));
  executor_ = std::make_unique<Executor>(std::move(graph), *device_);

  class Observer final : public UpdateObserver {
   public:
    void OnUpdates(UpdateSet set) override {
      for (const UpdateRecord& update : set.updates) {
        EXPECT_EQ(update.op->op, "ResourceScatterSub");
        EXPECT_FALSE(update.inputs[0].space().is_host());
        indices = set.device->CopyToHost(update.inputs[0]).ToVector<int32_t>();
        values = set.device->CopyToHost(update.inputs[1]).ToVector<float>();
      }
    }
    std::vector<int32_t> indices;
    std::vector<float> values;
  };
  const auto observer = std::make_shared<Observer>();
  task_->update_gate.SetObserver(observer, std::chrono::minutes(1));
  RunStep({});
  task_->update_gate.SetObserver(nullptr, std::chrono::minutes(1));
  EXPECT_THAT(observer->indices, ElementsAre(1, 0));
  EXPECT_THAT(observer->values, ElementsAre(3, 4));
  EXPECT_THAT(Value(), ElementsAre(-4, -3));
}

TEST_F(RecordedPlanTest, AStepWaitsForTheGate) {
  RunRecorded();
  task_->update_gate.Close(std::chrono::minutes(1));
  std::future<std::vector<float>> run = std::async(std::launch::async, [&] { return Run(); });
  EXPECT_THAT(Value(), ElementsAre(4, 40));
  task_->update_gate.Open();
  EXPECT_THAT(run.get(), ElementsAre(10, 100));
}

// Memory that launched steps need goes before graphs. They are made again when there is memory.
TEST_F(RecordedPlanTest, GraphsGiveTheirMemoryUp) {
  COHORT_NEEDS_FAKE("it has no memory when the test says so");
  RunRecorded();
  control().FailAllocation(1, 1000);
  // More than is free beside the memory of the graph in the segment that was taken from the card.
  Tensor wanted(DType::kUint8, Shape{int64_t{31} << 20}, device_->allocator());
  control().FailAllocation(0, 0);
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(10, 100)); }), 1);
  control().FailAllocation(1, 1000);
  EXPECT_THROW(Tensor(DType::kUint8, Shape{int64_t{100} << 20}, device_->allocator()), ResourceExhaustedError);
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(12, 120)); }), 0);  // there is no memory for a graph
  control().FailAllocation(0, 0);
  EXPECT_EQ(GraphsOf([&] { EXPECT_THAT(Run(), ElementsAre(14, 140)); }), 1);
}

// 54 of 64 MiB are enough, although twice the memory of the second attempt is too much.
TEST_F(RecordedPlanTest, AStepThatNeedsMostOfTheMemoryIsRecorded) {
  CudaDeviceOptions options;
  options.memory_limit = size_t{64} << 20;
  CudaDevice small(CudaBackend::Get(), AttributesOf(DeviceName::Parse("/job:small/task:0"), "GPU", 0), task_, *driver_,
                   options);
  const auto record = [&](int buffers) {
    return small.step_recorder()->Record([&](StepRecorder::Recording& recording) {
      std::vector<BufferPtr> held;
      for (int i = 0; i < buffers; ++i) held.push_back(recording.allocator().Allocate(size_t{18} << 20));
    });
  };
  EXPECT_NE(record(3), nullptr);
  EXPECT_THROW(record(4), ResourceExhaustedError);
}

// The recording of one session holds 40 of 64 MiB of the card. Another session, and a recording of it, may have them.
TEST_F(RecordedPlanTest, IdleGraphsOfOtherSessionsGiveTheirMemoryUp) {
  COHORT_NEEDS_FAKE("its card has 64 MiB");
  FakeDriverOptions card;
  card.memory_bytes = size_t{64} << 20;
  FakeDriver driver(card);
  CudaDeviceOptions options;
  options.memory_limit = card.memory_bytes;
  const auto session = [&](const std::string& job) {
    const DeviceName task = DeviceName::Parse(StrCat("/job:", job, "/task:0"));
    return std::make_unique<CudaDevice>(CudaBackend::Get(), AttributesOf(task, "GPU", 0), task_, driver, options);
  };
  constexpr size_t kMany = size_t{40} << 20;
  const auto record = [&](CudaDevice& device) {
    return device.step_recorder()->Record(
        [&](StepRecorder::Recording& recording) { recording.allocator().Allocate(kMany); });
  };
  const std::unique_ptr<CudaDevice> first = session("first"), second = session("second");
  const std::unique_ptr<RecordedStep> idle = record(*first);
  EXPECT_EQ(idle->Enqueue({}), RecordedStep::Outcome::kEnqueued);
  EXPECT_THROW(second->allocator().Allocate(kMany), ResourceExhaustedError);  // a step uses the graph
  EXPECT_TRUE(idle->Finish({}).ok());
  BufferPtr wanted = second->allocator().Allocate(kMany);
  EXPECT_EQ(idle->Enqueue({}), RecordedStep::Outcome::kStale);
  EXPECT_THROW(record(*first), ResourceExhaustedError);  // memory that is in use stays
  wanted = BufferPtr();
  const std::unique_ptr<RecordedStep> again = record(*first);
  const std::unique_ptr<RecordedStep> other = record(*second);
  EXPECT_EQ(again->Enqueue({}), RecordedStep::Outcome::kStale);
  EXPECT_EQ(other->Enqueue({}), RecordedStep::Outcome::kEnqueued);
}

TEST_F(RecordedPlanTest, MemoryGoesBackWithThePlan) {
  const size_t before = device().memory().stats().in_use;
  RunRecorded();
  EXPECT_GT(device().memory().stats().in_use, before);
  executor_.reset();
  EXPECT_LE(device().memory().stats().in_use, before);
}

}  // namespace
}  // namespace cohort::cuda
