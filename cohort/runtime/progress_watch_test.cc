// The limit without progress of steps in one process. Kernels wait at a gate until the test opens it, or sleep for a
// short time.
#include "cohort/runtime/progress_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/mutex.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/ops/array.h"
#include "cohort/ops/queues.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/executor_fixture.h"
#include "cohort/runtime/testing/waiting_runs.h"

// Not in an unnamed namespace and not inlined, so that the stacks show it by name.
namespace progress_watch_test {

cohort::Mutex mu;
cohort::CondVar changed;
bool open COHORT_GUARDED_BY(mu) = false;

[[gnu::noinline]] void WaitAtGate() {
  cohort::MutexLock lock(mu);
  while (!open) changed.Wait(mu);
}

void SetOpen(bool value) {
  cohort::MutexLock lock(mu);
  open = value;
  changed.NotifyAll();
}

}  // namespace progress_watch_test

namespace cohort {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr milliseconds kLimit{400};

void Forward(KernelContext& ctx) { ctx.SetOutput(0, ctx.input(0)); }

class NeverDoneKernel final : public AsyncOpKernel {
 public:
  explicit NeverDoneKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CancellationManager& cancellation = *ctx.step().cancellation;
    if (cancellation.Register(done) == CancellationManager::kAlreadyCancelled) done(cancellation.status());
  }
};

const bool kProgressOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  for (const char* op : {"ProgressGate", "ProgressSleep", "ProgressNeverDone"}) {
    OpRegistry::Global().Register(OpDef(op).Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext& c) {
      return std::vector<Shape>{c.input(0)};
    }));
  }
  KernelRegistry::Global().RegisterFn("ProgressGate", "CPU", [](KernelContext& ctx) {
    progress_watch_test::WaitAtGate();
    Forward(ctx);
  });
  KernelRegistry::Global().RegisterFn("ProgressSleep", "CPU", [](KernelContext& ctx) {
    std::this_thread::sleep_for(milliseconds(50));  // the kernel's work
    Forward(ctx);
  });
  KernelRegistry::Global().Register<NeverDoneKernel>("ProgressNeverDone", "CPU");
  return true;
}();

Output AddOwn(const char* op, Output x, const std::string& name) {
  return x.graph().Op(op).Name(name).Input(x).Finish1();
}

// Sends what this process writes to stderr into a file, as long as the object exists.
class StderrInFile {
 public:
  StderrInFile() : before_(dup(STDERR_FILENO)) {
    const int file = open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~StderrInFile() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  // Waits until the file has the text, at most a minute. Returns the contents. No event tells that a line is in a log.
  std::string WaitFor(const std::string& text) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string all = ReadFile(path_);
    while (all.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(20));
      all = ReadFile(path_);
    }
    return all;
  }

 private:
  const testing::TempFolder folder_;
  const std::string path_ = folder_ / "stderr";
  const int before_;
};

class ProgressWatchTest : public ::testing::Test {
 protected:
  ProgressWatchTest() {
    config_.progress_limit = kLimit;
    progress_watch_test::SetOpen(false);
  }
  ~ProgressWatchTest() override { progress_watch_test::SetOpen(true); }

  static std::string ErrorOf(const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      return Status::FromCurrentException().ToString();
    }
    return "no error";
  }

  Graph graph_;
  const Output x_ = ops::Placeholder(graph_, DType::kFloat32, Shape{}, "x");
  const FeedList feeds_ = {{x_, Tensor::Scalar(1.0f)}};
  SessionConfig config_;
};

TEST_F(ProgressWatchTest, AKernelThatDoesNotReturnFailsItsStepAndIsNamedWithItsStack) {
  const Output stuck = AddOwn("ProgressGate", x_, "the_gate");
  Session session(graph_, "", config_);
  const auto run = testing::WaitingRun::Start(session, {feeds_, {stuck}});
  const std::string error = ErrorOf([&] { run->Wait(); });
  EXPECT_THAT(error, AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("has made no progress for "),
                           HasSubstr("the limit is 0.4 s"),
                           HasSubstr("/job:localhost/replica:0/task:0 runs node 'the_gate' (ProgressGate)"),
                           HasSubstr("progress_watch_test::WaitAtGate")));
  progress_watch_test::SetOpen(true);
}

TEST_F(ProgressWatchTest, RunReturnsWithoutAKernelOfAnotherThreadThatDoesNot) {
  const Output stuck = AddOwn("ProgressGate", x_, "the_gate");
  Session session(graph_, "", config_);
  // With a timeout the step runs on the compute thread, so that the caller can watch the clock.
  const std::string error = ErrorOf([&] { session.Run(feeds_, {stuck}, {}, {.timeout = std::chrono::minutes(10)}); });
  EXPECT_THAT(error, AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("'the_gate' (ProgressGate)")));
  progress_watch_test::SetOpen(true);
}

TEST_F(ProgressWatchTest, AStepOnTheCallersThreadIsToldInTheLogAndFailsWhenItsKernelReturns) {
  const Output stuck = AddOwn("ProgressSleep", AddOwn("ProgressGate", x_, "the_gate"), "after");
  Session session(graph_, "", config_);
  StderrInFile log;
  std::future<std::string> error =
      std::async(std::launch::async, [&] { return ErrorOf([&] { session.Run(feeds_, {stuck}); }); });
  const std::string line = "E [session] the thread that called Run does not return from a kernel";
  EXPECT_THAT(log.WaitFor(line), AllOf(HasSubstr(line), HasSubstr("'the_gate' (ProgressGate)"),
                                       HasSubstr("progress_watch_test::WaitAtGate")));
  EXPECT_NE(error.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  progress_watch_test::SetOpen(true);
  EXPECT_THAT(error.get(), AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("'the_gate' (ProgressGate)")));
}

TEST_F(ProgressWatchTest, AKernelThatNeverCallsBackFailsItsStep) {
  const Output stuck = AddOwn("ProgressNeverDone", x_, "forgotten");
  Session session(graph_, "", config_);
  EXPECT_THAT(ErrorOf([&] { session.Run(feeds_, {stuck}); }),
              AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("works on node 'forgotten' (ProgressNeverDone)")));
  // The session goes on.
  EXPECT_EQ(session.Run(feeds_, {AddOwn("ProgressSleep", x_, "quick")}).front().scalar<float>(), 1.0f);
}

TEST_F(ProgressWatchTest, AStepBehindAKernelThatDoesNotReturnNamesThatKernel) {
  const Output stuck = AddOwn("ProgressGate", x_, "the_gate");
  const Output behind = AddOwn("ProgressSleep", x_, "behind");
  Session session(graph_, "", config_);
  const auto first = testing::WaitingRun::Start(session, {feeds_, {stuck}});
  const auto second = testing::WaitingRun::Start(session, {feeds_, {behind}});
  EXPECT_THAT(ErrorOf([&] { first->Wait(); }), HasSubstr("runs node 'the_gate'"));
  EXPECT_THAT(ErrorOf([&] { second->Wait(); }),
              AllOf(HasSubstr("waits for a thread, and for another step runs node 'the_gate' (ProgressGate)"),
                    HasSubstr("progress_watch_test::WaitAtGate")));
  progress_watch_test::SetOpen(true);
}

TEST_F(ProgressWatchTest, ManyShortKernelsAreProgress) {
  Output y = x_;
  for (int i = 0; i < 30; ++i) y = AddOwn("ProgressSleep", y, "sleep_" + std::to_string(i));  // 1.5 s
  Session session(graph_, "", config_);
  EXPECT_EQ(session.Run(feeds_, {y}).front().scalar<float>(), 1.0f);
  EXPECT_EQ(testing::WaitingRun::Start(session, {feeds_, {y}})->Wait().front().scalar<float>(), 1.0f);
}

TEST_F(ProgressWatchTest, AStepThatWaitsInAQueueIsNotLate) {
  const ops::FIFOQueue queue(graph_, {DType::kFloat32}, {.capacity = 10, .shapes = {Shape{}}});
  const Output taken = queue.Dequeue().front();
  Node* const put = queue.Enqueue({x_});
  Session session(graph_, "", config_);
  const auto waits = testing::WaitingRun::Start(session, {{}, {taken}});
  std::this_thread::sleep_for(4 * kLimit);  // the property: nothing happens in this time
  EXPECT_FALSE(waits->ended());
  session.Run(feeds_, {}, {put});
  EXPECT_EQ(waits->Wait().front().scalar<float>(), 1.0f);
}

TEST_F(ProgressWatchTest, ZeroMeansNoLimit) {
  config_.progress_limit = milliseconds(0);
  const Output stuck = AddOwn("ProgressGate", x_, "the_gate");
  Session session(graph_, "", config_);
  const auto run = testing::WaitingRun::Start(session, {feeds_, {stuck}});
  std::this_thread::sleep_for(3 * kLimit);  // the property: nothing happens in this time
  EXPECT_FALSE(run->ended());
  progress_watch_test::SetOpen(true);
  EXPECT_EQ(run->Wait().front().scalar<float>(), 1.0f);
}

TEST_F(ProgressWatchTest, TheEnvironmentSetsTheLimit) {
  config_.progress_limit.reset();
  const Output stuck = AddOwn("ProgressNeverDone", x_, "forgotten");
  setenv("COHORT_PROGRESS_LIMIT", "0.3", 1);
  {
    Session session(graph_, "", config_);
    EXPECT_THAT(ErrorOf([&] { session.Run(feeds_, {stuck}); }), HasSubstr("the limit is 0.3 s"));
  }
  setenv("COHORT_PROGRESS_LIMIT", "soon", 1);
  EXPECT_THAT(ErrorOf([&] { Session session(graph_, "", config_); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("COHORT_PROGRESS_LIMIT"), HasSubstr("'soon'")));
  unsetenv("COHORT_PROGRESS_LIMIT");
  config_.progress_limit = milliseconds(-1);
  EXPECT_THAT(ErrorOf([&] { Session session(graph_, "", config_); }), HasSubstr("got -1 ms"));
}

TEST(StepReportTest, OnlyWaitsForOtherStepsAreNoDelay) {
  const auto report = [](std::vector<RunningOperation> operations) {
    StepReport one;
    one.task = "/job:ps/replica:0/task:0";
    one.known = true;
    one.step.operations = std::move(operations);
    return one;
  };
  const RunningOperation runs{"a", "MatMul", "d", 7, WaitKind::kWork, "", ""};
  const RunningOperation value{"b", "_Recv", "d", 0, WaitKind::kValue, "the value 'v'", "/job:ps/replica:0/task:1"};
  const RunningOperation queue{"c", "QueueDequeueV2", "d", 0, WaitKind::kOtherSteps, "", ""};
  const RunningOperation loop{"w", "While", "d", 0, WaitKind::kCall, "", ""};
  const RunningOperation reads{"r", "IteratorGetNext", "d", 0, WaitKind::kWork, "", ""};
  EXPECT_TRUE(WaitsForOthers({report({value}), report({queue})}));
  EXPECT_TRUE(WaitsForOthers({report({loop, queue})}));
  EXPECT_FALSE(WaitsForOthers({report({value})}));
  EXPECT_FALSE(WaitsForOthers({report({queue}), report({runs})}));
  EXPECT_FALSE(WaitsForOthers({report({queue, reads})}));
  EXPECT_FALSE(WaitsForOthers({report({}), report({value})}));
  StepReport silent;
  silent.task = "/job:ps/replica:0/task:2";
  silent.answered = Status(Code::kDeadlineExceeded, "no answer in time");
  EXPECT_FALSE(WaitsForOthers({report({value}), silent}));
  EXPECT_EQ(Describe({report({value}), silent, report({runs})}),
            "/job:ps/replica:0/task:0 runs node 'a' (MatMul) on d\n"
            "/job:ps/replica:0/task:2 does not answer: no answer in time\n"
            "/job:ps/replica:0/task:0 waits for the value 'v' of /job:ps/replica:0/task:1");
}

}  // namespace
}  // namespace cohort
