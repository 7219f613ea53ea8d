#include "cohort/runtime/program_activity.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/ops/array.h"
#include "cohort/ops/queues.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/executor_fixture.h"
#include "cohort/runtime/testing/waiting_runs.h"

namespace cohort {
namespace {

// Holds a kernel until the test has seen it.
struct Gate {
  Mutex mu;
  CondVar changed;
  bool entered COHORT_GUARDED_BY(mu) = false;
  bool open COHORT_GUARDED_BY(mu) = false;

  void Pass() {
    MutexLock lock(mu);
    entered = true;
    changed.NotifyAll();
    while (!open) changed.Wait(mu);
  }
  void AwaitEntered() {
    MutexLock lock(mu);
    while (!entered) changed.Wait(mu);
  }
  void Open() {
    MutexLock lock(mu);
    open = true;
    changed.NotifyAll();
  }
};

Gate* gate = nullptr;  // of the test that runs

const bool kActivityGateRegistered = [] {
  testing::RegisterForDeviceKinds();
  OpRegistry::Global().Register(
      OpDef("ActivityGate").Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext& c) {
        return std::vector<Shape>{c.input(0)};
      }));
  KernelRegistry::Global().RegisterFn("ActivityGate", "CPU", [](KernelContext& ctx) {
    gate->Pass();
    ctx.SetOutput(0, ctx.input(0));
  });
  return true;
}();

const ProgramActivity& Activity() { return ProgramActivity::Global(); }

TEST(ProgramActivityTest, TheStampChangesWithEachCall) {
  Graph graph;
  const Output x = ops::Const(graph, 1.0f);
  const int64_t sessions = Activity().Collect().sessions;
  uint64_t stamp = Activity().Stamp();
  const auto changed = [&stamp] {
    const uint64_t before = std::exchange(stamp, Activity().Stamp());
    return stamp != before;
  };
  {
    Session session(graph);
    EXPECT_TRUE(changed());
    EXPECT_EQ(Activity().Collect().sessions, sessions + 1);
    session.Run(x);
    EXPECT_TRUE(changed());
    session.Run(x);
    EXPECT_TRUE(changed());
    EXPECT_FALSE(changed());
    EXPECT_EQ(Activity().Collect().stamp, stamp);
    session.Close();
    EXPECT_TRUE(changed());
    EXPECT_EQ(Activity().Collect().sessions, sessions);
  }
  EXPECT_FALSE(changed()) << "it was closed before";
  ProgramActivity::Global().OnCollective();
  EXPECT_TRUE(changed());
}

// A thread that is in Run is in a call, whether it runs the kernels by itself or waits for those that do.
TEST(ProgramActivityTest, AThreadThatWaitsForAStepIsInACall) {
  for (const bool runs_them_itself : {true, false}) {
    Gate here;
    gate = &here;
    Graph graph;
    const Output y = graph.Op("ActivityGate").Input(ops::Const(graph, 1.0f)).Finish1();
    Session session(graph);
    EXPECT_FALSE(Activity().Collect().in_call);
    RunOptions options;
    if (!runs_them_itself) options.timeout = std::chrono::hours(1);
    std::thread runs([&] { session.Run({}, {y}, {}, options); });
    here.AwaitEntered();
    EXPECT_TRUE(Activity().Collect().in_call) << runs_them_itself;
    here.Open();
    runs.join();
    while (Activity().Collect().in_call) std::this_thread::yield();  // ends: the device's thread still leaves the step
  }
}

// The threads of a queue runner do not wait for the steps that they leave to a task.
TEST(ProgramActivityTest, AStepThatItsTaskRepeatsIsNoCall) {
  for (const bool repeats : {true, false}) {
    Graph graph;
    const ops::FIFOQueue queue(graph, {DType::kFloat32}, {.capacity = 1, .shapes = {Shape{}}});
    const Output taken = queue.Dequeue().front();
    Session session(graph);
    const auto run = testing::WaitingRun::Start(session, {{}, {}, {taken.node}, {.repeat_on_task = repeats}});
    EXPECT_EQ(Activity().Collect().in_call, !repeats);
    session.Close();
    EXPECT_THROW(run->Wait(), Error);
  }
}

TEST(ProgramActivityTest, ACallWithoutAStep) {
  EXPECT_FALSE(Activity().Collect().in_call);
  {
    const ProgramActivity::Call call;
    EXPECT_TRUE(Activity().Collect().in_call);
  }
  EXPECT_FALSE(Activity().Collect().in_call);
}

}  // namespace
}  // namespace cohort
