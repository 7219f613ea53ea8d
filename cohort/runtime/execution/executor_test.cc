// One suite for all kinds of device: what a plan promises, whether its kernels end at once or later on a stream.
#include "cohort/runtime/execution/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/runtime/testing/executor_fixture.h"

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the kernels of the test's own ops share with the tests.
struct Board {
  testing::HeldKernels held;  // ExecutorHold
  Mutex mu;
  std::atomic<int> counted{0};            // ExecutorCount
  std::atomic<int> counted_elsewhere{0};  // not on its device's own thread
  std::multiset<std::pair<int, MemorySpace>> seen
      COHORT_GUARDED_BY(mu);  // ExecutorProbe: number of the value, where it lay
};
Board& TheBoard() {
  static auto* const board = new Board;
  return *board;
}

testing::HeldKernels& HeldByTheBoard() { return TheBoard().held; }

void Count(KernelContext& ctx) {
  TheBoard().counted.fetch_add(1);
  if (!ctx.device().compute_thread().IsOwnThread()) TheBoard().counted_elsewhere.fetch_add(1);
  ctx.SetOutput(0, ctx.input(0));
}
void Refuse(KernelContext& ctx) { throw InvalidArgumentError(StrCat("refused ", ctx.input(0).shape())); }
void Probe(KernelContext& ctx) {
  Board& board = TheBoard();
  MutexLock lock(board.mu);
  board.seen.emplace(static_cast<int>(ctx.node().attr<int64_t>("number")), ctx.input(0).space());
  ctx.SetOutput(0, ctx.input(0));
}

const bool kExecutorOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  const auto same = [](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; };
  for (const char* op : {"ExecutorHold", "ExecutorCount", "ExecutorRefuse"}) {
    OpRegistry::Global().Register(OpDef(op).Input("x: float32").Output("y: float32").ShapeRule(same).Stateful());
  }
  OpRegistry::Global().Register(
      OpDef("ExecutorProbe").Input("x: T").Output("y: T").Attr("T: type").Attr("number: int").ShapeRule(same));
  KernelRegistry& kernels = KernelRegistry::Global();
  kernels.Register<testing::HoldingKernel<HeldByTheBoard>>("ExecutorHold", "CPU");
  kernels.RegisterFn("ExecutorCount", "CPU", Count);
  kernels.RegisterFn("ExecutorRefuse", "CPU", Refuse);
  // The device's own kernel, which is not shown the host's view.
  for (const char* type : {"CPU", "TEST", "GPU"}) kernels.RegisterFn("ExecutorProbe", type, Probe);
  testing::RegisterKernelsForDeviceKinds();
  return true;
}();

class ExecutorTest : public testing::ExecutorFixture {
 protected:
  ExecutorTest() {
    TheBoard().counted = 0;
    TheBoard().counted_elsewhere = 0;
    MutexLock lock(TheBoard().mu);
    TheBoard().seen.clear();
  }

  Output Probed(Output x, int number) { return g_.Op("ExecutorProbe").Input(x).Attr("number", number).Finish1(); }
  // The value of a variable that a plan on the device has set.
  float ValueOf(const std::string& name) {
    const auto variable = std::dynamic_pointer_cast<VariableResource>(task_->resources.Lookup("", name));
    return variable == nullptr ? -1 : its_device().CopyToHost(variable->Read()).scalar<float>();
  }
  // The handle of a variable that is 0.
  Output ZeroVariable(const std::string& name) {
    MakeVariable(name, Shape{})->Assign(its_device().CopyFromHost(Tensor::Scalar(0.0f)));
    return g_.Op("VarHandleOp")
        .Attr("dtype", DType::kFloat32)
        .Attr("shape", Shape{})
        .Attr("shared_name", name)
        .Finish1();
  }
  Node* Add(Output handle, Output change) { return g_.Op("AssignAddVariableOp").Input(handle).Input(change).Finish(); }
};
INSTANTIATE_TEST_SUITE_P(Devices, ExecutorTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_P(ExecutorTest, FeedsGoToTheDeviceAndFetchesComeBack) {
  const Output x = Arg(DType::kFloat32, 0);
  Retval(Probed(Probed(x, 0) * 2.0f, 1), 0);
  Retval(x, 1);
  const auto executor = Compile();
  const Tensor feed = Tensor::Vector<float>({1, 2, 3});
  const std::vector<Tensor> rets = Run(*executor, {feed}, 2);
  EXPECT_EQ(rets[0].space(), MemorySpace::Host());
  EXPECT_THAT(rets[0].ToVector<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(rets[1].ToVector<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(feed.ToVector<float>(), ElementsAre(1, 2, 3));
  const MemorySpace space = its_device().allocator().space();
  EXPECT_EQ(space == MemorySpace::Host(), is_cpu());
  MutexLock lock(TheBoard().mu);
  EXPECT_THAT(TheBoard().seen, ElementsAre(std::make_pair(0, space), std::make_pair(1, space)));
}

TEST_P(ExecutorTest, HostMemoryInputsComeFromFeedsConstantsAndValuesOfTheDevice) {
  const Output x = Arg(DType::kFloat32, 0);
  const Output fed_shape = Arg(DType::kInt32, 1);
  const Output computed_shape = fed_shape * ops::Const(g_, 1);       // computed in the device's memory
  const Output doubled = ops::ShapeOf(x) * ops::Const(g_, 2);        // from host memory to the device
  const Output shared = ops::Const(g_, std::vector<int32_t>{3, 2});  // as a shape and as a value
  Retval(ops::Reshape(x, fed_shape), 0);
  Retval(ops::Reshape(x, computed_shape), 1);
  Retval(ops::Reshape(x, shared), 2);
  Retval(Probed(shared + fed_shape, 0), 3);
  Retval(Probed(doubled, 0), 4);
  Retval(ops::Sum(x, {0}), 5);
  Retval(ops::ShapeOf(x), 6);
  const auto executor = Compile();
  for (int round = 0; round < 2; ++round) {
    const Tensor feed = Tensor::Vector<float>({1, 2, 3, 4, 5, 6});
    const std::vector<Tensor> rets = Run(*executor, {feed, Tensor::Vector<int32_t>({2, 3})}, 7);
    EXPECT_EQ(rets[0].shape(), (Shape{2, 3}));
    EXPECT_EQ(rets[1].shape(), (Shape{2, 3}));
    EXPECT_EQ(rets[2].shape(), (Shape{3, 2}));
    EXPECT_THAT(rets[2].ToVector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(rets[3].ToVector<int32_t>(), ElementsAre(5, 5));
    EXPECT_THAT(rets[4].ToVector<int32_t>(), ElementsAre(12));
    EXPECT_EQ(rets[5].scalar<float>(), 21);
    EXPECT_THAT(rets[6].ToVector<int32_t>(), ElementsAre(6));
  }
  MutexLock lock(TheBoard().mu);
  for (const auto& [number, space] : TheBoard().seen) EXPECT_EQ(space, its_device().allocator().space());
}

TEST_P(ExecutorTest, StringsAndHandlesStayInHostMemory) {
  const Output text = Arg(DType::kString, 0);
  Retval(ops::Reshape(text, ops::Const(g_, std::vector<int32_t>{1})), 0);
  const auto executor = Compile();
  EXPECT_EQ(Run(*executor, {Tensor::Scalar("text")}, 1)[0].data<std::string>()[0], "text");
}

TEST_P(ExecutorTest, ChainsOfElementwiseKernels) {
  const Output x = Arg(DType::kFloat32, 0);
  const Output row = Arg(DType::kFloat32, 1);
  Output y = x;
  for (int i = 1; i <= 40; ++i) y = i % 3 == 0 ? y - row : i % 2 == 0 ? 2.0f * y : y * 0.5f + x * 0.0f;
  Retval(y, 0);
  Retval(ops::Neg(ops::Neg(x)), 1);
  const auto executor = Compile();
  for (const int64_t n : {0, 1, 5, 3000}) {
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i % 97));
    const Tensor feed = Tensor::Vector(values);
    for (const Tensor& other : {Tensor::Vector(std::vector<float>(values.size(), 1.0f)), Tensor::Scalar(1.0f)}) {
      const std::vector<Tensor> rets = Run(*executor, {feed, other}, 2);
      ASSERT_EQ(rets[0].num_elements(), n);
      for (size_t i = 0; i < values.size(); ++i) {
        float expected = values[i];
        for (int k = 1; k <= 40; ++k) expected = k % 3 == 0 ? expected - 1 : k % 2 == 0 ? 2 * expected : expected / 2;
        ASSERT_EQ(rets[0].data<float>()[i], expected) << i << " of " << n;
        ASSERT_EQ(rets[1].data<float>()[i], values[i]);
      }
    }
  }
}

TEST_P(ExecutorTest, ManyStepsAtOnceKeepApart) {
  const Output x = Arg(DType::kFloat32, 0);
  Retval(ops::Sum(ops::MatMul(x, x)) + 0.0f, 0);
  const auto executor = Compile();
  std::vector<std::unique_ptr<Step>> steps;
  for (int i = 0; i < 64; ++i) {
    const Tensor feed = Tensor::FromValues(std::vector<float>(16, static_cast<float>(i)), Shape{4, 4});
    steps.push_back(Start(*executor, {feed}, 1, i % 2 == 0 ? Executor::Mode::kInline : Executor::Mode::kDevice));
  }
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(steps[static_cast<size_t>(i)]->Wait().ok());
    EXPECT_EQ(steps[static_cast<size_t>(i)]->rets[0].scalar<float>(), static_cast<float>(64 * i * i));
  }
}

TEST_P(ExecutorTest, AKernelsErrorNamesItAndTheNextStepIsFine) {
  const Output x = Arg(DType::kFloat32, 0);
  Retval(ops::Reshape(Own("ExecutorCount", x), ops::Const(g_, std::vector<int32_t>{2, 2})) * 2.0f, 0);
  Retval(Own("ExecutorCount", x + 1.0f), 1);
  const auto executor = Compile();
  const auto step = Start(*executor, {Tensor::Vector<float>({1, 2, 3})}, 2);
  const Status status = step->Wait();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("Reshape"));
  EXPECT_THAT(status.message(), HasSubstr(its_device().name()));
  EXPECT_THAT(status.message(), HasSubstr("[3]"));
  EXPECT_TRUE(step->cancellation.cancelled());
  EXPECT_EQ(Run(*executor, {Tensor::Vector<float>({1, 2, 3, 4})}, 2)[0].shape(), (Shape{2, 2}));
}

TEST_P(ExecutorTest, AsynchronousKernelsHoldNoThread) {
  const Output x = Arg(DType::kFloat32, 0);
  Retval(Own("ExecutorHold", x) + Own("ExecutorCount", x * 3.0f), 0);
  const auto executor = Compile();
  std::vector<std::unique_ptr<Step>> steps;
  steps.reserve(8);
  for (int i = 0; i < 8; ++i) steps.push_back(Start(*executor, {Tensor::Scalar(static_cast<float>(i))}, 1));
  TheBoard().held.WaitFor(8);  // all of them wait, and none of them keeps this or the stream's thread
  TheBoard().held.Release();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(steps[static_cast<size_t>(i)]->Wait().ok());
    EXPECT_EQ(steps[static_cast<size_t>(i)]->rets[0].scalar<float>(), static_cast<float>(4 * i));
  }
}

TEST_P(ExecutorTest, ACancelledStepStartsNoMoreKernels) {
  Output y = Own("ExecutorHold", Arg(DType::kFloat32, 0));
  for (int i = 0; i < 1000; ++i) y = Own("ExecutorCount", y);
  Retval(y, 0);
  const auto executor = Compile();
  const auto step = Start(*executor, {Tensor::Scalar(1.0f)}, 1);
  TheBoard().held.WaitFor(1);
  step->cancellation.Cancel(Status(Code::kCancelled, "enough"));
  TheBoard().held.Release();
  const Status status = step->Wait();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(TheBoard().counted, 0);
}

TEST_P(ExecutorTest, ACancelledSynchronousPlanStops) {
  Output y = Arg(DType::kFloat32, 0);
  for (int i = 0; i < 100; ++i) y = Own("ExecutorCount", y);
  Retval(y, 0);
  const auto executor = Compile();
  auto step = std::make_unique<Step>();
  step->args = {Tensor::Scalar(1.0f)};
  step->rets.resize(1);
  step->info = {1, nullptr, &step->cancellation, step->args, step->rets};
  step->cancellation.Cancel(Status(Code::kCancelled, "enough"));
  executor->RunAsync(step->info, Executor::Mode::kInline,
                     [raw = step.get()](const Status& status) { raw->ended.set_value(status); });
  EXPECT_EQ(step->Wait().message(), "enough");
  EXPECT_EQ(TheBoard().counted, 0);
}

TEST_P(ExecutorTest, WhoBringsAValueDoesNotStayForLongWork) {
  const Output held = Own("ExecutorHold", Arg(DType::kFloat32, 0));
  Retval(Own("ExecutorCount", Own("ExecutorCount", held)), 0);
  const auto executor = Compile();
  const auto step = Start(*executor, {Tensor::Zeros(DType::kFloat32, Shape{1 << 20})}, 1);
  TheBoard().held.WaitFor(1);
  TheBoard().held.Release();
  EXPECT_TRUE(step->Wait().ok());
  EXPECT_EQ(TheBoard().counted, 2);
  // Another kind of device has a stream for its work.
  EXPECT_EQ(TheBoard().counted_elsewhere, its_device().type() == "CPU" ? 0 : 2);
}

TEST_P(ExecutorTest, ACutSeesTheUpdatesOfAStepAsAWhole) {
  const Output a = ZeroVariable("a");
  const Output b = ZeroVariable("b");
  const Output x = Arg(DType::kFloat32, 0);
  Add(a, x);
  Add(b, ops::Neg(x));
  const auto executor = Compile();
  std::atomic<bool> stop{false};
  std::thread cuts([&] {
    for (int i = 0; i < 100 && !stop; ++i) {
      try {
        task_->update_gate.Close(milliseconds(20000));
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
        return;
      }
      EXPECT_EQ(ValueOf("a"), -ValueOf("b"));
      task_->update_gate.Open();
      std::this_thread::yield();
    }
  });
  constexpr int kSteps = 400;
  std::vector<std::unique_ptr<Step>> steps;
  for (int i = 0; i < kSteps; ++i) {
    const auto mode = i % 2 == 0 ? Executor::Mode::kInline : Executor::Mode::kDevice;
    steps.push_back(Start(*executor, {Tensor::Scalar(1.0f)}, 0, mode));
  }
  for (const auto& step : steps) EXPECT_TRUE(step->Wait().ok());
  stop = true;
  cuts.join();
  EXPECT_EQ(ValueOf("a"), kSteps);
  EXPECT_EQ(ValueOf("b"), -kSteps);
}

// A step in the middle of its updates needs the device's thread; another one must not keep it while a checkpoint waits
// for the first.
TEST_P(ExecutorTest, WhoWaitsForTheGateLeavesTheDevicesThreadsFree) {
  const Output a = ZeroVariable("a");
  const Output b = ZeroVariable("b");
  const Output x = Arg(DType::kFloat32, 0);
  Node* first = Add(a, x);
  Output held;
  {
    const ControlDependencies after(g_, {first});
    held = Own("ExecutorHold", x);
  }
  Add(b, held);
  const auto executor = Compile();
  const auto inside = Start(*executor, {Tensor::Scalar(1.0f)}, 0, Executor::Mode::kDevice);
  TheBoard().held.WaitFor(1);
  std::thread cut([&] {
    try {
      task_->update_gate.Close(milliseconds(20000));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      return;
    }
    EXPECT_EQ(ValueOf("a"), ValueOf("b"));
    task_->update_gate.Open();
  });
  while (task_->update_gate.TryEnterStep()) {  // until the other thread waits to close it
    task_->update_gate.LeaveStep();
    std::this_thread::yield();
  }
  const auto outside = Start(*executor, {Tensor::Scalar(1.0f)}, 0, Executor::Mode::kDevice);
  TheBoard().held.Release();
  EXPECT_TRUE(inside->Wait().ok());
  cut.join();
  TheBoard().held.WaitFor(1);
  TheBoard().held.Release();
  EXPECT_TRUE(outside->Wait().ok());
  EXPECT_EQ(ValueOf("a"), 2);
  EXPECT_EQ(ValueOf("b"), 2);
}

TEST_P(ExecutorTest, AStepThatIsCancelledAtTheGateUpdatesNothing) {
  const Output a = ZeroVariable("a");
  const Output x = Arg(DType::kFloat32, 0);
  Add(a, x);
  const auto executor = Compile();
  task_->update_gate.Close(milliseconds(20000));
  const auto step = Start(*executor, {Tensor::Scalar(1.0f)}, 0, Executor::Mode::kDevice);
  step->cancellation.Cancel(Status(Code::kCancelled, "enough"));
  task_->update_gate.Open();
  EXPECT_EQ(step->Wait().message(), "enough");
  EXPECT_EQ(ValueOf("a"), 0);
  task_->update_gate.Close(milliseconds(20000));  // nobody is left inside
  task_->update_gate.Open();
}

TEST_P(ExecutorTest, UpdatesThatHaveBegunAreFinishedWhenTheirStepFails) {
  const Output a = ZeroVariable("a");
  const Output b = ZeroVariable("b");
  const Output ready = Own("ExecutorHold", Arg(DType::kFloat32, 0));  // all that follows becomes ready at once
  Add(a, ready);
  Retval(Own("ExecutorCount", Own("ExecutorRefuse", ready)), 0);
  Add(b, ready);
  const auto executor = Compile();
  const auto step = Start(*executor, {Tensor::Scalar(1.0f)}, 1);
  TheBoard().held.WaitFor(1);
  TheBoard().held.Release();
  const Status status = step->Wait();
  EXPECT_THAT(status.message(), HasSubstr("refused"));
  EXPECT_EQ(ValueOf("a"), 1);
  // If the refusal is work on a stream, it stands before this update, and work behind an error does nothing. On GPUs a
  // kernel of a test computes on the host, and refuses when it is called, as on the CPU.
  EXPECT_EQ(ValueOf("b"), GetParam() == std::string("TEST") ? 0 : 1);
  EXPECT_EQ(TheBoard().counted, 0);
}

}  // namespace
}  // namespace cohort
