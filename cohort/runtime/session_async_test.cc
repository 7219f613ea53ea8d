// Runs that are under way at the same time, results by Output, and the interceptor of a session's runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/executor_fixture.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

testing::HeldKernels& HeldRuns() {
  static auto* const held = new testing::HeldKernels;
  return *held;
}

// Never ends by itself, only when its step is cancelled.
class WaitForCancel final : public AsyncOpKernel {
 public:
  explicit WaitForCancel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CancellationManager& cancellation = *ctx.step().cancellation;
    if (cancellation.Register(done) == CancellationManager::kAlreadyCancelled) done(cancellation.status());
  }
};

// How often SessionLimitedRuns may still run, and how often it has run.
std::atomic<int> runs_left{0};
std::atomic<int> runs_made{0};

const bool kAsyncOpsRegistered = [] {
  testing::RegisterForDeviceKinds();
  for (const char* op : {"SessionHold", "SessionWaitForCancel", "SessionEndOfInput", "SessionLimitedRuns"}) {
    OpRegistry::Global().Register(OpDef(op).Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext& c) {
      return std::vector<Shape>{c.input(0)};
    }));
  }
  KernelRegistry::Global().Register<testing::HoldingKernel<HeldRuns>>("SessionHold", "CPU");
  KernelRegistry::Global().RegisterFn("SessionEndOfInput", "CPU",
                                      [](KernelContext&) { throw OutOfRangeError("the input ends"); });
  KernelRegistry::Global().RegisterFn("SessionLimitedRuns", "CPU", [](KernelContext& ctx) {
    if (runs_left.fetch_sub(1) <= 0) throw OutOfRangeError("the runs are used up");
    ++runs_made;
    ctx.SetOutput(0, ctx.input(0));
  });
  KernelRegistry::Global().Register<WaitForCancel>("SessionWaitForCancel", "CPU");
  testing::RegisterKernelsForDeviceKinds();
  return true;
}();

// The outcome of one RunAsync.
struct Outcome {
  Status status;
  RunResults results;
};

std::future<Outcome> Start(Session& session, RunRequest request) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> outcome = promise->get_future();
  session.RunAsync(std::move(request), [promise](const Status& status, RunResults results) {
    promise->set_value({status, std::move(results)});
  });
  return outcome;
}

Outcome Await(std::future<Outcome>& outcome) {
  if (outcome.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    throw DeadlineExceededError("the run did not end within a minute");
  }
  return outcome.get();
}

class SessionAsyncTest : public testing::DeviceKindTest {};
INSTANTIATE_TEST_SUITE_P(Devices, SessionAsyncTest, testing::AllDeviceKinds(), testing::DeviceKindName);

TEST_P(SessionAsyncTest, ReturnsBeforeItsKernelsHaveRun) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output y = on.graph.Op("SessionHold").Input(x).Finish1() + 1.0f;
  Session session(on.graph, "", config());
  std::vector<std::future<Outcome>> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(Start(session, {{{x, Tensor::Scalar(static_cast<float>(i))}}, {y}}));
  HeldRuns().WaitFor(4);  // all are under way; the caller's thread is here
  HeldRuns().Release();
  for (int i = 0; i < 4; ++i) {
    const Outcome outcome = Await(runs[static_cast<size_t>(i)]);
    outcome.status.ThrowIfError();
    EXPECT_EQ(outcome.results[y].scalar<float>(), static_cast<float>(i) + 1);
  }
}

TEST_P(SessionAsyncTest, TellsWhatRunWouldHaveThrown) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{2}, "x");
  Session session(on.graph, "", config());
  auto misfit = Start(session, {{{x, Tensor::Scalar(1.0f)}}, {x + 1.0f}});
  const Status wrong_shape = Await(misfit).status;
  EXPECT_EQ(wrong_shape.code(), Code::kInvalidArgument);
  EXPECT_THAT(wrong_shape.message(), AllOf(HasSubstr("x:0"), HasSubstr("[2]")));
  auto unfed = Start(session, {{}, {x + 2.0f}});
  EXPECT_EQ(Await(unfed).status.code(), Code::kInvalidArgument);
  session.Close();
  auto closed = Start(session, {{{x, Tensor::Vector<float>({1, 2})}}, {x + 1.0f}});
  EXPECT_EQ(Await(closed).status.code(), Code::kFailedPrecondition);
}

// It happens once an epoch, so it costs no search for lines of the program.
TEST_P(SessionAsyncTest, TheEndOfAnInputIsTheSameForRunAndRunAsync) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output y = on.graph.Op("SessionEndOfInput").Input(x).Finish1();
  Session session(on.graph, "", config());
  const FeedList feeds = {{x, Tensor::Scalar(1.0f)}};
  const std::string of_run = MessageOf<OutOfRangeError>([&] { session.Run(feeds, {y}); });
  EXPECT_THAT(of_run, HasSubstr("the input ends"));
  auto run = Start(session, {feeds, {y}});
  const Status status = Await(run).status;
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_EQ(status.message(), of_run);
}

TEST_P(SessionAsyncTest, EndsAtItsTimeOut) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output never = on.graph.Op("SessionWaitForCancel").Input(x).Finish1();
  Session session(on.graph, "", config());
  auto run = Start(session, {{{x, Tensor::Scalar(1.0f)}}, {never}, {}, {.timeout = std::chrono::milliseconds(50)}});
  const Status status = Await(run).status;
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("50 ms"), HasSubstr("/job:localhost")));
}

// The kernel waits for its cancellation, so the step is late on any machine.
TEST_P(SessionAsyncTest, ALateStepIsToldWithTheTasksAtWork) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output never = on.graph.Op("SessionWaitForCancel").Input(x).Finish1();
  SessionConfig config = this->config();
  config.late_step = std::chrono::milliseconds(1);
  Session session(on.graph, "", config);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(ErrorOf([&] {
                session.Run({{x, Tensor::Scalar(1.0f)}}, {never}, {}, {.timeout = std::chrono::milliseconds(500)});
              }),
              HasSubstr("did not end within 500 ms"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("W [session] step 1 has been under way for "));
  EXPECT_THAT(log, HasSubstr(" s; still at work: /job:localhost/replica:0/task:0"));
}

TEST_P(SessionAsyncTest, EndsWhenTheSessionCloses) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output never = on.graph.Op("SessionWaitForCancel").Input(x).Finish1();
  auto session = std::make_unique<Session>(on.graph, "", config());
  auto run = Start(*session, {{{x, Tensor::Scalar(1.0f)}}, {never}});
  session.reset();
  EXPECT_EQ(Await(run).status.code(), Code::kCancelled);
}

TEST_P(SessionAsyncTest, UpdatesOfManyRunsAreAllApplied) {
  testing::GraphOnDevice on(device());
  const ops::Variable v(on.graph, Tensor::Scalar(0.0f), {.name = "v"});
  Node* add = v.AssignAdd(ops::Const(on.graph, 1.0f));
  Session session(on.graph, "", config());
  session.Run(ops::GlobalVariablesInitializer(on.graph));
  std::vector<std::future<Outcome>> runs;
  for (int i = 0; i < 50; ++i) runs.push_back(Start(session, {{}, {}, {add}}));
  for (auto& run : runs) Await(run).status.ThrowIfError();
  EXPECT_EQ(session.Run(v.value()).scalar<float>(), 50.0f);
}

// A thousand runs that never wait would also show if each run made the stack deeper.
TEST_P(SessionAsyncTest, ATaskRepeatsARunUntilItFails) {
  testing::GraphOnDevice on(device());
  const Output y = on.graph.Op("SessionLimitedRuns").Input(ops::Const(on.graph, 1.0f)).Finish1();
  Session session(on.graph, "", config());
  runs_left = 1000;
  runs_made = 0;
  auto repeated = Start(session, {{}, {}, {y.node}, {.repeat_on_task = true}});
  const Status end = Await(repeated).status;
  EXPECT_EQ(end.code(), Code::kOutOfRange);
  EXPECT_THAT(end.message(), HasSubstr("the runs are used up"));
  EXPECT_EQ(runs_made, 1000);
}

TEST_P(SessionAsyncTest, ARepeatedRunEndsWhenItIsCancelledAndWithItsSession) {
  for (const bool close : {false, true}) {
    testing::GraphOnDevice on(device());
    const Output y = on.graph.Op("SessionLimitedRuns").Input(ops::Const(on.graph, 1.0f)).Finish1();
    Session session(on.graph, "", config());
    runs_left = 2'000'000'000;
    runs_made = 0;
    auto repeated = Start(session, {{}, {}, {y.node}, {.repeat_on_task = true}});
    while (runs_made < 3) std::this_thread::yield();
    close ? session.Close() : session.CancelRuns(Status(Code::kUnavailable, "not any more"));
    EXPECT_EQ(Await(repeated).status.code(), close ? Code::kCancelled : Code::kUnavailable);
    session.Close();
    const int made = runs_made;
    std::this_thread::yield();
    EXPECT_EQ(runs_made, made);
  }
}

TEST_P(SessionAsyncTest, ARunThatOneTaskCannotRepeatByItselfIsMadeOnce) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output fed = on.graph.Op("SessionLimitedRuns").Input(x).Finish1();
  const Output y = on.graph.Op("SessionLimitedRuns").Input(ops::Const(on.graph, 1.0f)).Finish1();
  Session session(on.graph, "", config());
  runs_left = 2'000'000'000;
  runs_made = 0;
  auto fetches = Start(session, {{}, {y}, {}, {.repeat_on_task = true}});
  Await(fetches).status.ThrowIfError();
  auto feeds = Start(session, {{{x, Tensor::Scalar(1.0f)}}, {}, {fed.node}, {.repeat_on_task = true}});
  Await(feeds).status.ThrowIfError();
  auto timeout = Start(session, {{}, {}, {y.node}, {.timeout = std::chrono::minutes(1), .repeat_on_task = true}});
  Await(timeout).status.ThrowIfError();
  auto traced = Start(session, {{}, {}, {y.node}, {.trace_level = TraceLevel::kFullTrace, .repeat_on_task = true}});
  Await(traced).status.ThrowIfError();
  EXPECT_EQ(runs_made, 4);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run({}, {}, {y.node}, {.repeat_on_task = true}); }),
              HasSubstr("repeat_on_task only with RunAsync"));
}

TEST_P(SessionAsyncTest, ResultsAreAskedByOutput) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output y = x + 1.0f;
  const Output z = x * 3.0f;
  Session session(on.graph, "", config());
  const RunResults results = session.Run({{x, Tensor::Scalar(2.0f)}}, {z, y});
  EXPECT_EQ(results[y].scalar<float>(), 3.0f);
  EXPECT_EQ(results[z].scalar<float>(), 6.0f);
  EXPECT_EQ(results[0].scalar<float>(), 6.0f);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { results[x]; }), AllOf(HasSubstr(x.name()), HasSubstr(y.name())));
  const Callable call = session.MakeCallable({x}, {z, y});
  EXPECT_EQ(call({Tensor::Scalar(5.0f)})[y].scalar<float>(), 6.0f);
}

// Adds a fetch to each run and keeps what it sees.
class Recorder final : public RunInterceptor {
 public:
  explicit Recorder(Output extra) : extra_(extra) {}
  void BeforeRun(RunRequest* request) override { request->fetches.push_back(extra_); }
  void AfterRun(const RunRequest& request, const Status& status, const RunResults& results) override {
    MutexLock lock(mu_);
    codes_.push_back(status.code());
    if (status.ok()) seen_.push_back(results[extra_].scalar<float>());
  }
  std::vector<Code> codes() {
    MutexLock lock(mu_);
    return codes_;
  }
  std::vector<float> seen() {
    MutexLock lock(mu_);
    return seen_;
  }

 private:
  const Output extra_;
  Mutex mu_;
  std::vector<Code> codes_ COHORT_GUARDED_BY(mu_);
  std::vector<float> seen_ COHORT_GUARDED_BY(mu_);
};

TEST_P(SessionAsyncTest, TheInterceptorAddsFetchesThatTheCallerDoesNotSee) {
  testing::GraphOnDevice on(device());
  const Output x = ops::Placeholder(on.graph, DType::kFloat32, Shape{}, "x");
  const Output y = x + 1.0f;
  const Output extra = x * 10.0f;
  Session session(on.graph, "", config());
  const auto recorder = std::make_shared<Recorder>(extra);
  session.SetInterceptor(recorder);
  const RunResults results = session.Run({{x, Tensor::Scalar(2.0f)}}, {y});
  EXPECT_EQ(results.size(), 1u);
  auto async = Start(session, {{{x, Tensor::Scalar(3.0f)}}, {y}});
  const Outcome outcome = Await(async);
  EXPECT_EQ(outcome.results.size(), 1u);
  EXPECT_EQ(outcome.results[y].scalar<float>(), 4.0f);
  EXPECT_THROW(session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y}), InvalidArgumentError);
  auto misfit = Start(session, {{{x, Tensor::Vector<float>({1, 2})}}, {y}});  // does not even start
  EXPECT_EQ(Await(misfit).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(recorder->seen(), (std::vector<float>{20, 30}));
  EXPECT_EQ(recorder->codes(),
            (std::vector<Code>{Code::kOk, Code::kOk, Code::kInvalidArgument, Code::kInvalidArgument}));
  session.SetInterceptor(nullptr);
  session.Run({{x, Tensor::Scalar(2.0f)}}, {y});
  EXPECT_EQ(recorder->codes().size(), 4u);
}

}  // namespace
}  // namespace cohort
