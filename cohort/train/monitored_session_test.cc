#include "cohort/train/monitored_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/session/training_record.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using cohort::testing::LocalCluster;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each run of `train` adds 1 to w and to the global step.
struct Counter {
  explicit Counter(const DeviceFunction& device = nullptr) {
    RegisterAll();
    std::optional<DeviceScope> scope;
    if (device) scope.emplace(graph, device);
    step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{}, DType::kFloat32, initializers::Constant(0.0));
    Node* add = w.AssignAdd(1.0f);
    const ControlDependencies after(graph, {add});
    train = step.AssignAdd(1);
  }
  Graph graph;
  ops::Variable step, w;
  Node* train = nullptr;
};

// Writes down its calls. Throws in the function that `fails_in` names.
class RecordingHook final : public SessionRunHook {
 public:
  RecordingHook(std::string label, std::vector<std::string>* calls, std::string fails_in = "")
      : label_(std::move(label)), calls_(calls), fails_in_(std::move(fails_in)) {}
  void Begin(Graph&) override { Called("begin"); }
  void AfterCreateSession(Session&, Coordinator&) override { Called("created"); }
  SessionRunArgs BeforeRun(SessionRunContext&) override {
    Called("before");
    return {};
  }
  void AfterRun(SessionRunContext& context, const SessionRunValues&) override {
    Called("after");
    if (fails_in_ == "stop") context.RequestStop();
  }
  void End(Session&) override { Called("end"); }

 private:
  void Called(const std::string& what) {
    calls_->push_back(label_ + " " + what);
    if (fails_in_ == what) throw InvalidArgumentError("the hook fails in " + what);
  }
  const std::string label_;
  std::vector<std::string>* const calls_;
  const std::string fails_in_;
};

TEST(MonitoredSessionTest, CallsHooksInOrder) {
  Counter model;
  std::vector<std::string> calls;
  MonitoredSession session = MonitoredTrainingSession(
      model.graph, {.hooks = {std::make_shared<RecordingHook>("b", &calls)},
                    .chief_only_hooks = {std::make_shared<RecordingHook>("a", &calls, "stop")}});
  EXPECT_EQ(session.Run({}, {model.w.value()}).size(), 1u);
  EXPECT_TRUE(session.should_stop());
  session.Close();
  session.Close();
  EXPECT_THAT(calls, ElementsAre("a begin", "b begin", "a created", "b created", "a before", "b before", "a after",
                                 "b after", "a end", "b end"));
  EXPECT_THROW(session.Run(model.train), FailedPreconditionError);
}

TEST(MonitoredSessionTest, AHookThatThrowsIsNamedAndItsErrorIsThrown) {
  for (const std::string phase : {"begin", "created", "before", "after", "end"}) {
    Counter model;
    std::vector<std::string> calls;
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                  MonitoredSession session = MonitoredTrainingSession(
                      model.graph, {.hooks = {std::make_shared<RecordingHook>("a", &calls, phase)}});
                  session.Run(model.train);
                  session.Close();
                }),
                HasSubstr("fails in " + phase));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the hook RecordingHook failed in"));
    if (phase != "end") {
      EXPECT_THAT(calls, ::testing::Not(::testing::Contains("a end")));
    }
  }
}

TEST(MonitoredSessionTest, AHookMayAddNodesOnlyInBegin) {
  struct Adding final : SessionRunHook {
    void AfterCreateSession(Session& session, Coordinator&) override {
      ops::Const(const_cast<Graph&>(session.graph()), 1.0f);
    }
  };
  Counter model;
  EXPECT_THAT(MessageOf<FailedPreconditionError>(
                  [&] { (void)MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<Adding>()}}); }),
              HasSubstr("finalized"));
}

TEST(MonitoredSessionTest, ASecondSessionNeedsAGraphOfItsOwn) {
  Counter model;
  MonitoredTrainingSession(model.graph, {}).Close();
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { (void)MonitoredTrainingSession(model.graph, {}); }),
              HasSubstr("a graph of its own"));
}

TEST(MonitoredSessionTest, EndOfTheDataIsACleanEnd) {
  Counter model;
  std::vector<std::string> calls;
  MonitoredSession session =
      MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<RecordingHook>("a", &calls)}});
  int runs = 0;
  session.RunUntilStop([&](MonitoredSession& s) {
    if (++runs == 3) throw OutOfRangeError("End of sequence");
    s.Run(model.train);
  });
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(calls.back(), "a end");
}

TEST(MonitoredSessionTest, AnErrorOfTheProgramSkipsEnd) {
  Counter model;
  std::vector<std::string> calls;
  try {
    const MonitoredSession session =
        MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<RecordingHook>("a", &calls)}});
    throw NotFoundError("the program's own");
  } catch (const NotFoundError&) {
  }
  EXPECT_EQ(calls.back(), "a created");
}

TEST(MonitoredSessionTest, AnErrorOfAThreadReachesTheLoop) {
  Counter model;
  MonitoredSession session = MonitoredTrainingSession(model.graph, {});
  session.coordinator().Loop("failing", std::chrono::hours(1), [] { throw DataLossError("the thread's"); });
  ASSERT_TRUE(session.coordinator().WaitForStop(Clock::now() + std::chrono::minutes(1)));
  EXPECT_THROW(session.Run(model.train), DataLossError);
  EXPECT_THROW(session.Close(), DataLossError);
}

TEST(MonitoredSessionTest, RunStepFnMixesRunsWithAndWithoutHooks) {
  Counter model;
  std::vector<std::string> calls;
  MonitoredSession session =
      MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<RecordingHook>("a", &calls)}});
  const RunResults results = session.RunStepFn([&](MonitoredSession::StepContext& context) {
    context.session().Run(model.train);
    context.RequestStop();
    return context.RunWithHooks({}, {model.w.value()}, {});
  });
  EXPECT_EQ(results.front().scalar<float>(), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "a before"), 1);
  EXPECT_TRUE(session.should_stop());
}

TEST(MonitoredSessionTest, RejectsTwoRatesOfCheckpoints) {
  Counter model;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                (void)MonitoredTrainingSession(model.graph, {.checkpoint_dir = "unused",
                                                             .save_checkpoint_interval = std::chrono::seconds(1),
                                                             .save_checkpoint_steps = 1});
              }),
              AllOf(HasSubstr("save_checkpoint_steps"), HasSubstr("both")));
}

class MonitoredClusterTest : public ::testing::Test {
 protected:
  MonitoredClusterTest() : cluster_({{"ps", 1}, {"worker", 2}}) {}

  MonitoredTrainingSessionOptions Options(int worker, std::vector<std::shared_ptr<SessionRunHook>> hooks = {}) {
    return {.master = cluster_.target("worker", worker),
            .is_chief = worker == 0,
            .checkpoint_dir = folder_.path(),
            .hooks = std::move(hooks),
            .save_checkpoint_steps = 10,
            .max_wait = std::chrono::seconds(60)};
  }
  DeviceFunction Setter() const { return ReplicaDeviceSetter({.cluster = cluster_.spec()}); }

  const testing::TempFolder folder_;
  LocalCluster cluster_;
};

TEST_F(MonitoredClusterTest, WorkersStopByTheSharedStep) {
  std::vector<int> runs(2, 0);
  std::vector<std::thread> workers;
  for (int w = 0; w < 2; ++w) {
    workers.emplace_back([&, w] {
      Counter model(Setter());
      MonitoredSession session = MonitoredTrainingSession(
          model.graph, Options(w, {std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = 40})}));
      while (!session.should_stop()) {
        session.Run(model.train);
        ++runs[static_cast<size_t>(w)];
      }
      session.Close();
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_GE(runs[0] + runs[1], 40);
  EXPECT_LE(runs[0] + runs[1], 41);
}

TEST_F(MonitoredClusterTest, AfterALostParameterServerTheStepIsRepeatedFromTheCheckpoint) {
  Counter model(Setter());
  std::vector<std::string> calls;
  MonitoredSession session =
      MonitoredTrainingSession(model.graph, Options(0, {std::make_shared<RecordingHook>("a", &calls)}));
  for (int i = 0; i < 15; ++i) session.Run(model.train);  // checkpoints at 0 and 10
  cluster_.Restart("ps", 0);
  session.Run(model.train);  // no error is seen
  EXPECT_EQ(session.Run(model.step.value()).scalar<int64_t>(), 11);
  EXPECT_EQ(session.Run(model.w.value()).scalar<float>(), 11);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "a begin"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "a created"), 2);
  session.Close();
  EXPECT_EQ(calls.back(), "a end");
}

// Writes down by which number each try of a step may be repeated; the first try fails as if a task was lost.
class NumberedHook final : public SessionRunHook {
 public:
  SessionRunArgs BeforeRun(SessionRunContext& context) override {
    numbers.push_back(context.original_args().options.closure.number);
    if (numbers.size() == 1) throw UnavailableError("a task is lost");
    return {};
  }
  std::vector<int64_t> numbers;
};

TEST_F(MonitoredClusterTest, ARepeatedStepHasTheNumberOfItsFirstTry) {
  Counter model(Setter());
  const auto hook = std::make_shared<NumberedHook>();
  MonitoredSession session = MonitoredTrainingSession(model.graph, Options(0, {hook}));
  session.Run(model.train);
  session.Run(model.train);
  EXPECT_THAT(hook->numbers, ElementsAre(1, 1, 2));
  EXPECT_EQ(session.Run(model.step.value()).scalar<int64_t>(), 2);
  session.Close();
}

TEST_F(MonitoredClusterTest, AStepThatIsRepeatedAfterARestoreMakesAllUpdates) {
  struct RestartsAfterThreeRuns final : SessionRunHook {
    explicit RestartsAfterThreeRuns(LocalCluster& cluster) : cluster(cluster) {}
    SessionRunArgs BeforeRun(SessionRunContext& context) override {
      numbers.push_back(context.original_args().options.closure.number);
      if (numbers.size() == 3) cluster.Restart("ps", 0);
      return {};
    }
    LocalCluster& cluster;
    std::vector<int64_t> numbers;
  };
  Counter model(Setter());
  const auto hook = std::make_shared<RestartsAfterThreeRuns>(cluster_);
  MonitoredSession session = MonitoredTrainingSession(model.graph, Options(0, {hook}));
  for (int i = 0; i < 3; ++i) session.Run(model.train);
  EXPECT_THAT(hook->numbers, ElementsAre(1, 2, 3, 4));         // the fourth one repeats the third one
  EXPECT_EQ(session.Run(model.w.value()).scalar<float>(), 1);  // the checkpoint of step 0, and one step
  session.Close();
}

TEST_F(MonitoredClusterTest, ANewChiefKeepsWhatALivingParameterServerHolds) {
  {
    Counter model(Setter());
    try {
      MonitoredSession session = MonitoredTrainingSession(model.graph, Options(0));
      for (int i = 0; i < 15; ++i) session.Run(model.train);
      throw NotFoundError("the chief dies: no last checkpoint is saved");
    } catch (const NotFoundError&) {
    }
  }
  {
    Counter model(Setter());
    MonitoredSession session = MonitoredTrainingSession(model.graph, Options(0));
    EXPECT_EQ(session.Run(model.step.value()).scalar<int64_t>(), 15);
    session.Close();
  }
  // A training in another folder is another one: it starts from the initial values.
  const testing::TempFolder other;
  Counter model(Setter());
  MonitoredTrainingSessionOptions options = Options(0);
  options.checkpoint_dir = other.path();
  MonitoredSession session = MonitoredTrainingSession(model.graph, options);
  EXPECT_EQ(session.Run(model.step.value()).scalar<int64_t>(), 0);
  session.Close();
}

TEST_F(MonitoredClusterTest, AMisspeltTargetIsAnsweredWithTheRightOne) {
  Counter model;
  EXPECT_THAT(MessageOf<NotFoundError>(
                  [&] { (void)MonitoredTrainingSession(model.graph, {.master = "grpc/192.168.1.12:2222"}); }),
              HasSubstr("did you mean \"grpc://192.168.1.12:2222\""));
}

TEST_F(MonitoredClusterTest, ASecondChiefIsRefusedByTheNameOfTheFirst) {
  MonitoredTrainingSessionOptions options = Options(0);
  options.server = &cluster_.server("worker", 0);
  Counter model(Setter());
  MonitoredSession first = MonitoredTrainingSession(model.graph, options);
  options = Options(1);
  options.is_chief = true;
  options.server = &cluster_.server("worker", 1);
  options.chief_wait = std::chrono::milliseconds(300);
  Counter other(Setter());
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { (void)MonitoredTrainingSession(other.graph, options); }),
              AllOf(HasSubstr("expected one chief"), HasSubstr("/job:worker/task:0"), HasSubstr("/job:worker/task:1")));
  // The first one was not disturbed.
  for (int i = 0; i < 3; ++i) first.Run(model.train);
  EXPECT_EQ(first.Run(model.w.value()).scalar<float>(), 3);
  first.Close();
  // When it has ended, there may be another one.
  options.chief_wait = std::chrono::seconds(60);
  Counter third(Setter());
  MonitoredSession next = MonitoredTrainingSession(third.graph, options);
  next.Run(third.train);
  next.Close();
}

TEST_F(MonitoredClusterTest, ANewChiefWithAnotherModelOfThisTrainingIsRefused) {
  {
    Counter model(Setter());
    AddTrainingSetting(model.graph, "the number of replicas", 2);
    MonitoredTrainingSession(model.graph, Options(0)).Close();
  }
  Counter model(Setter());
  AddTrainingSetting(model.graph, "the number of replicas", 3);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { (void)MonitoredTrainingSession(model.graph, Options(0)); }),
              AllOf(HasSubstr("the number of replicas is 3"), HasSubstr("and 2 in the latest chief"),
                    HasSubstr("start the parameter servers and all workers again")));
}

TEST_F(MonitoredClusterTest, WithoutAChiefTheWaitEndsAndNamesTheVariables) {
  MonitoredTrainingSessionOptions options = Options(1);
  options.max_wait = std::chrono::milliseconds(500);
  Counter model(Setter());
  EXPECT_THAT(MessageOf<DeadlineExceededError>([&] { (void)MonitoredTrainingSession(model.graph, options); }),
              AllOf(HasSubstr("chief"), HasSubstr("global_step"), HasSubstr("w")));
}

TEST_F(MonitoredClusterTest, AWorkerWithAnotherModelIsRefused) {
  Counter model(Setter());
  MonitoredSession chief = MonitoredTrainingSession(model.graph, Options(0));
  Counter larger(Setter());
  {
    const DeviceScope scope(larger.graph, Setter());
    ops::GetVariable(larger.graph, "second", Shape{3}, DType::kFloat32, initializers::Zeros());
  }
  // It does not wait until max_wait for a value that the chief will never give.
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { (void)MonitoredTrainingSession(larger.graph, Options(1)); }),
              AllOf(HasSubstr("variable second is float32[3] in"), HasSubstr("missing in the chief"),
                    HasSubstr(cluster_.target("worker", 0)), HasSubstr(cluster_.target("worker", 1))));
  chief.Close();
}

TEST(MonitoredSessionTest, AWorkerOfAClusterWithoutParameterServersIsRefused) {
  LocalCluster cluster({{"worker", 2}});
  const MonitoredTrainingSessionOptions options{
      .master = cluster.target("worker", 1), .is_chief = false, .server = &cluster.server("worker", 1)};
  Counter model(ReplicaDeviceSetter({.worker_device = "/job:worker/task:1", .cluster = cluster.spec()}));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { (void)MonitoredTrainingSession(model.graph, options); }),
              AllOf(HasSubstr("w"), HasSubstr("ReplicaDeviceSetter"), HasSubstr("parameter servers")));
}

TEST(MonitoredSessionTest, AFeedOfAHookAndOfTheProgramIsRefusedByBothNames) {
  Counter model;
  const Output x = ops::Placeholder(model.graph, DType::kFloat32, Shape{}, "x");
  const auto feeds = [x] { return FeedList{{x, Tensor::Scalar(1.0f)}}; };
  {
    MonitoredSession session = MonitoredTrainingSession(model.graph, {.hooks = {std::make_shared<FeedFnHook>(feeds)}});
    EXPECT_EQ(session.Run(x).scalar<float>(), 1);
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(feeds(), {x}); }),
                AllOf(HasSubstr("x:0 is fed by the program"), HasSubstr("the hook FeedFnHook")));
  }
}

// Sends SIGTERM to its process while the session is made, and waits until all who listen for it are told.
class SignalsWhileCreated final : public SessionRunHook {
 public:
  void AfterCreateSession(Session&, Coordinator&) override {
    std::promise<void> told;
    const StopSignal last([&told] { told.set_value(); });
    raise(SIGTERM);
    told.get_future().wait();
  }
};

// The training is not done, so the parameter servers stay for the next run. A signal is of a whole process, so the case
// runs in one of its own.
TEST(MonitoredSessionDeathTest, SigtermWhileTheSessionIsMadeDoesNotEndTheTraining) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        LocalCluster cluster({{"ps", 1}, {"worker", 1}});
        Counter model(ReplicaDeviceSetter({.cluster = cluster.spec()}));
        MonitoredSession session =
            MonitoredTrainingSession(model.graph, {.master = cluster.target("worker", 0),
                                                   .hooks = {std::make_shared<SignalsWhileCreated>()},
                                                   .server = &cluster.server("worker", 0)});
        const bool stops = session.should_stop();
        session.Close();
        _exit(stops && !cluster.server("ps", 0).training_done() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cohort::train
