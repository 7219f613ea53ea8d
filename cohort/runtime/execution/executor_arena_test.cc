// What an executor's steps keep of each other's values while these lie in one block.
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
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/runtime/execution/executor.h"
#include "cohort/runtime/testing/executor_fixture.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 64;
constexpr int64_t kColumns = 512;  // 128 KiB a value

// What the kernels of the test's own ops share with the tests.
struct Desk {
  Mutex mu;
  bool keeping COHORT_GUARDED_BY(mu) = false;
  std::vector<Tensor> kept COHORT_GUARDED_BY(mu);  // ArenaKeep
  std::atomic<bool> refusing{false};               // ArenaRefuse
  std::atomic<bool> cancelling{false};             // ArenaRefuse
  CancellationManager* cancellation = nullptr;
  testing::HeldKernels held;  // ArenaHold

  void Keep(bool keep) {
    MutexLock lock(mu);
    keeping = keep;
  }
};
Desk& TheDesk() {
  static auto* const desk = new Desk;
  return *desk;
}

// x + 1, in memory of its own.
void Next(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& y = ctx.AllocateOutput(0, x.shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) y.data<float>()[i] = x.data<float>()[i] + 1;
}
// The latter half of the rows, sharing the bytes.
void Half(KernelContext& ctx) {
  const int64_t rows = ctx.input(0).shape().dim(0);
  ctx.SetOutput(0, ctx.input(0).Slice(rows / 2, rows));
}
// As many rows as the first element says.
void Rows(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto rows = static_cast<int64_t>(x.data<float>()[0]);
  Tensor& y = ctx.AllocateOutput(0, Shape{rows, kColumns});
  for (int64_t i = 0; i < y.num_elements(); ++i) y.data<float>()[i] = x.data<float>()[0];
}
void Keep(KernelContext& ctx) {
  ctx.SetOutput(0, ctx.input(0));
  MutexLock lock(TheDesk().mu);
  if (TheDesk().keeping) TheDesk().kept.push_back(ctx.input(0));
}
void RefuseSome(KernelContext& ctx) {
  if (TheDesk().refusing) throw InvalidArgumentError("refused");
  if (TheDesk().cancelling) TheDesk().cancellation->Cancel(Status(Code::kCancelled, "enough"));
  ctx.SetOutput(0, ctx.input(0));
}
testing::HeldKernels& HeldByTheDesk() { return TheDesk().held; }

const bool kArenaOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  const auto same = [](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; };
  const auto half = [](ShapeContext& c) {
    const Shape& x = c.input(0);
    return std::vector<Shape>{{x.has_rank() && x.dim(0) >= 0 ? x.dim(0) - x.dim(0) / 2 : -1, kColumns}};
  };
  const auto rows = [](ShapeContext&) { return std::vector<Shape>{Shape{-1, kColumns}}; };
  OpRegistry& ops = OpRegistry::Global();
  const auto one_to_one = [](const char* op) { return OpDef(op).Input("x: float32").Output("y: float32").Stateful(); };
  for (const char* op : {"ArenaNext", "ArenaKeep", "ArenaRefuse", "ArenaHold"}) {
    ops.Register(one_to_one(op).ShapeRule(same));
  }
  ops.Register(one_to_one("ArenaHalf").ShapeRule(half));
  ops.Register(one_to_one("ArenaRows").ShapeRule(rows).DataDependentShape());
  KernelRegistry& kernels = KernelRegistry::Global();
  kernels.RegisterFn("ArenaNext", "CPU", Next);
  kernels.RegisterFn("ArenaHalf", "CPU", Half);
  kernels.RegisterFn("ArenaRows", "CPU", Rows);
  kernels.RegisterFn("ArenaKeep", "CPU", Keep);
  kernels.RegisterFn("ArenaRefuse", "CPU", RefuseSome);
  kernels.Register<testing::HoldingKernel<HeldByTheDesk>>("ArenaHold", "CPU");
  testing::RegisterKernelsForDeviceKinds();
  return true;
}();

Tensor Filled(float value, int64_t rows = kRows) {
  return Tensor::FromValues(std::vector<float>(static_cast<size_t>(rows * kColumns), value), Shape{rows, kColumns});
}
// Whether all elements are `value`, and there are `rows` rows.
bool IsFilled(const Tensor& tensor, float value, int64_t rows = kRows) {
  if (tensor.num_elements() != rows * kColumns) return false;
  for (const float element : tensor.values<float>()) {
    if (element != value) return false;
  }
  return true;
}
int64_t HostBytesInUse() { return HostAllocatorStats().bytes_in_use; }

class ExecutorArenaTest : public testing::ExecutorFixture {
 protected:
  ExecutorArenaTest() { ForgetDesk(); }
  ~ExecutorArenaTest() override { ForgetDesk(); }
  static void ForgetDesk() {
    TheDesk().refusing = false;
    TheDesk().cancelling = false;
    TheDesk().Keep(false);
    MutexLock lock(TheDesk().mu);
    TheDesk().kept.clear();
  }

  Output Arg(int index) { return ExecutorFixture::Arg(DType::kFloat32, index); }
  Output Line(Output x, int nodes) {
    for (int i = 0; i < nodes; ++i) x = Own("ArenaNext", x);
    return x;
  }
  // On a device with memory of its own there is no arena; all else is the same.
  int64_t OnCpu(int64_t count) const { return is_cpu() ? count : 0; }
};
INSTANTIATE_TEST_SUITE_P(Devices, ExecutorArenaTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_P(ExecutorArenaTest, ValuesOfAPlanLieInOneBlockAndFetchesDoNot) {
  Retval(Line(Arg(0), 8), 0);
  const auto executor = Compile();
  std::vector<Tensor> fetched;
  for (int run = 0; run < 5; ++run) {
    fetched.push_back(Run(*executor, {Filled(static_cast<float>(run))}, 1)[0]);
    for (size_t i = 0; i < fetched.size(); ++i) EXPECT_TRUE(IsFilled(fetched[i], static_cast<float>(i) + 8));
  }
  const ArenaStats stats = executor->arena_stats();
  EXPECT_EQ(stats.planned, OnCpu(7));  // the eighth leaves
  EXPECT_EQ(stats.slices, OnCpu(4 * 7));
  EXPECT_EQ(stats.bytes, OnCpu(2 * kRows * kColumns * 4));
  EXPECT_EQ(stats.plans, OnCpu(1));
}

TEST_P(ExecutorArenaTest, ElementwiseChainsAndRealKernels) {
  const Output x = Arg(0);
  const Output square = ops::MatMul(x, x, false, true);  // [rows, rows]
  const Output chained = (square + 1.0f) * 2.0f;
  Retval(ops::Sum(chained * square), 0);
  const auto executor = Compile();
  for (int run = 0; run < 4; ++run) {
    const float s = kColumns;  // of ones
    EXPECT_EQ(Run(*executor, {Filled(1, 128)}, 1)[0].scalar<float>(), 128 * 128 * (s + 1) * 2 * s);
  }
  EXPECT_EQ(executor->arena_stats().slices > 0, is_cpu());
}

TEST_P(ExecutorArenaTest, ViewsProlongTheLifeOfWhatTheyShow) {
  const Output first = Line(Arg(0), 1);
  const Output half = Own("ArenaHalf", first);  // the slot of `first` is given up here
  const Output far = Line(ops::Reshape(half, ops::Const(g_, std::vector<int32_t>{kRows / 2, kColumns})), 1);
  const Output busy = Line(Line(Arg(0), 5), 3);
  {
    const ControlDependencies after(g_, {busy.node});
    Retval(Own("ArenaNext", half), 0);
    Retval(Own("ArenaNext", far), 2);
  }
  Retval(ops::Sum(busy), 1);
  const auto executor = Compile();
  for (int run = 0; run < 4; ++run) {
    const auto value = static_cast<float>(run);
    const std::vector<Tensor> rets = Run(*executor, {Filled(value)}, 3);
    EXPECT_TRUE(IsFilled(rets[0], value + 2, kRows / 2));
    EXPECT_EQ(rets[1].scalar<float>(), (value + 8) * kRows * kColumns);
    EXPECT_TRUE(IsFilled(rets[2], value + 3, kRows / 2));
  }
  EXPECT_EQ(executor->arena_stats().slices > 0, is_cpu());
}

// The node that allocates does not feed the fetch itself.
TEST_P(ExecutorArenaTest, AFetchedViewKeepsItsValue) {
  Retval(Own("ArenaHalf", Line(Arg(0), 3)), 0);
  Retval(ops::Sum(Line(Arg(0), 6)), 1);
  const auto executor = Compile();
  std::vector<Tensor> fetched;
  for (int run = 0; run < 5; ++run) {
    fetched.push_back(Run(*executor, {Filled(static_cast<float>(run))}, 2)[0]);
    for (size_t i = 0; i < fetched.size(); ++i) {
      EXPECT_TRUE(IsFilled(fetched[i], static_cast<float>(i) + 3, kRows / 2));
    }
  }
  EXPECT_EQ(executor->arena_stats().escapees, OnCpu(1));
}

TEST_P(ExecutorArenaTest, VariablesKeepWhatTheyAreGiven) {
  const auto assign = [&](const char* name, Output value) {
    MakeVariable(name, Shape{-1, kColumns});
    const Output handle = g_.Op("VarHandleOp")
                              .Attr("dtype", DType::kFloat32)
                              .Attr("shape", Shape{-1, kColumns})
                              .Attr("shared_name", name)
                              .Finish1();
    g_.Op("AssignVariableOp").Input(handle).Input(value).Finish();
  };
  assign("a", Line(Arg(0), 2));
  assign("b", ops::Reshape(Line(Arg(0), 3), ops::Const(g_, std::vector<int32_t>{-1, kColumns})));
  Retval(ops::Sum(Line(Arg(0), 6)), 0);
  const auto executor = Compile();
  const auto value_of = [&](const char* name) {
    return its_device().CopyToHost(
        std::dynamic_pointer_cast<VariableResource>(task_->resources.Lookup("", name))->Read());
  };
  for (int run = 0; run < 5; ++run) {
    const auto value = static_cast<float>(run);
    Run(*executor, {Filled(value)}, 1);
    EXPECT_TRUE(IsFilled(devices_.back()->CopyToHost(value_of("a")), value + 2));
    EXPECT_TRUE(IsFilled(devices_.back()->CopyToHost(value_of("b")), value + 3));
  }
}

TEST_P(ExecutorArenaTest, WhatAResourceKeepsFromALaterRunIsLearned) {
  Retval(ops::Sum(Line(Own("ArenaKeep", Line(Arg(0), 3)), 4)), 0);
  const auto executor = Compile();
  for (int run = 0; run < 3; ++run) Run(*executor, {Filled(0)}, 1);
  const int64_t before = HostBytesInUse();
  TheDesk().Keep(true);
  for (int run = 0; run < 3; ++run) Run(*executor, {Filled(static_cast<float>(run))}, 1);
  TheDesk().Keep(false);
  for (int run = 0; run < 3; ++run) Run(*executor, {Filled(100)}, 1);
  {
    MutexLock lock(TheDesk().mu);
    ASSERT_EQ(TheDesk().kept.size(), 3u);
    // On a stream the kernel saw addresses, whose memory it could not keep.
    for (size_t i = 0; i < 3 && is_cpu(); ++i) EXPECT_TRUE(IsFilled(TheDesk().kept[i], static_cast<float>(i) + 3));
    TheDesk().kept.clear();
  }
  EXPECT_EQ(HostBytesInUse(), before);
  EXPECT_EQ(executor->arena_stats().escapees, OnCpu(1));
  EXPECT_EQ(executor->arena_stats().plans, OnCpu(2));
}

TEST_P(ExecutorArenaTest, AFailedStepGivesItsBlockBack) {
  Retval(ops::Sum(Line(Own("ArenaRefuse", Line(Arg(0), 3)), 3)), 0);
  const auto executor = Compile();
  for (int run = 0; run < 2; ++run) Run(*executor, {Filled(0)}, 1);
  TrimHostAllocator();
  Run(*executor, {Filled(0)}, 1);
  const int64_t before = HostBytesInUse();
  const int64_t calls = HostAllocatorStats().system_allocations;
  TheDesk().refusing = true;
  for (int run = 0; run < 3; ++run) {
    const auto step = Prepare({Filled(1)}, 1);
    Start(*executor, *step);
    EXPECT_THAT(step->Wait().message(), HasSubstr("refused"));
    step->args.clear();
    EXPECT_EQ(HostBytesInUse(), before);
  }
  TheDesk().refusing = false;
  EXPECT_EQ(Run(*executor, {Filled(1)}, 1)[0].scalar<float>(), 7 * kRows * kColumns);
  EXPECT_LE(HostAllocatorStats().system_allocations, calls + 1);  // the feed's
  EXPECT_EQ(executor->arena_stats().plans, OnCpu(1));
}

TEST_P(ExecutorArenaTest, ACancelledStepGivesItsBlockBack) {
  Retval(ops::Sum(Line(Own("ArenaRefuse", Line(Arg(0), 3)), 3)), 0);
  const auto executor = Compile();
  for (int run = 0; run < 3; ++run) Run(*executor, {Filled(0)}, 1);
  const int64_t before = HostBytesInUse();
  const auto step = Prepare({Filled(1)}, 1);
  TheDesk().cancellation = &step->cancellation;
  TheDesk().cancelling = true;
  Start(*executor, *step);
  EXPECT_EQ(step->Wait().message(), "enough");
  step->args.clear();
  EXPECT_EQ(HostBytesInUse(), before);
  TheDesk().cancelling = false;
  EXPECT_EQ(Run(*executor, {Filled(1)}, 1)[0].scalar<float>(), 7 * kRows * kColumns);
}

TEST_P(ExecutorArenaTest, ThreadsThatRunAPlanAtOnceKeepApart) {
  const Output half = Own("ArenaHalf", Line(Arg(0), 3));
  Retval(half, 0);
  Retval(ops::Sum(Line(Arg(0), 6)), 1);
  const auto executor = Compile();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Tensor kept;
      for (int run = 0; run < (is_cpu() ? 60 : 10); ++run) {
        const auto value = static_cast<float>(t * 100 + run);
        const auto mode = t % 2 == 0 ? Executor::Mode::kInline : Executor::Mode::kDevice;
        const std::vector<Tensor> rets = Run(*executor, {Filled(value)}, 2, mode);
        EXPECT_TRUE(IsFilled(rets[0], value + 3, kRows / 2));
        EXPECT_EQ(rets[1].scalar<float>(), (value + 6) * kRows * kColumns);
        if (run > 0) {
          EXPECT_TRUE(IsFilled(kept, value + 2, kRows / 2));
        }
        kept = rets[0];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ExecutorArenaTest, SizesThatDependOnDataFallBack) {
  Retval(ops::Sum(Line(Own("ArenaRows", Arg(0)), 4)), 0);
  const auto executor = Compile();
  for (int run = 0; run < (is_cpu() ? 2000 : 50); ++run) {
    const int64_t rows = 1 + run * 37 % 97;
    const auto value = static_cast<float>(rows);
    const std::vector<Tensor> rets = Run(*executor, {Filled(value, 1)}, 1);
    ASSERT_EQ(rets[0].scalar<float>(), (value + 4) * value * kColumns);
  }
  EXPECT_LE(executor->arena_stats().plans, 14);
  EXPECT_EQ(executor->arena_stats().slices > 0, is_cpu());
}

TEST_P(ExecutorArenaTest, AroundAsynchronousKernels) {
  const Output held = Own("ArenaHold", Line(Arg(0), 3));
  const Output meanwhile = Line(Arg(0), 7);
  Retval(ops::Sum(Line(held, 3)), 0);
  Retval(ops::Sum(meanwhile), 1);
  const auto executor = Compile();
  for (int run = 0; run < 4; ++run) {
    std::vector<std::unique_ptr<Step>> steps;
    for (int i = 0; i < 3; ++i) {
      steps.push_back(Prepare({Filled(static_cast<float>(10 * run + i))}, 2));
      Start(*executor, *steps.back());
    }
    TheDesk().held.WaitFor(3);
    TheDesk().held.Release();
    for (int i = 0; i < 3; ++i) {
      const auto value = static_cast<float>(10 * run + i);
      Step& step = *steps[static_cast<size_t>(i)];
      ASSERT_TRUE(step.Wait().ok());
      EXPECT_EQ(step.rets[0].scalar<float>(), (value + 6) * kRows * kColumns);
      EXPECT_EQ(step.rets[1].scalar<float>(), (value + 7) * kRows * kColumns);
    }
  }
  EXPECT_EQ(executor->arena_stats().slices > 0, is_cpu());
}

TEST_P(ExecutorArenaTest, APlanOfSmallValuesDoesWithout) {
  Retval(Line(Arg(0), 5), 0);
  const auto executor = Compile();
  for (int run = 0; run < 20; ++run) Run(*executor, {Filled(1, 1)}, 1);
  EXPECT_EQ(executor->arena_stats().plans, 0);
  EXPECT_EQ(executor->arena_stats().from_outside, 0);
  for (int run = 0; run < 3; ++run) Run(*executor, {Filled(1)}, 1);  // a large feed: it is looked at again
  EXPECT_EQ(executor->arena_stats().slices, OnCpu(2 * 4));
}

}  // namespace
}  // namespace cohort
