#include "cohort/train/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/summary.h"
#include "cohort/registration.h"
#include "cohort/summary/event_reader.h"
#include "cohort/summary/summary.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/optimizer.h"
#include "cohort/train/session/training_record.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

namespace fs = std::filesystem;
using cohort::testing::LocalCluster;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class SupervisorTest : public ::testing::Test {
 protected:
  std::vector<Event> Events() const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      if (entry.path().filename().string().find("tfevents") != std::string::npos)
        paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Event> events;
    for (const std::string& path : paths) {
      EventReader reader(path);
      Event event;
      while (reader.Read(&event) == RecordReader::Outcome::kRecord) events.push_back(event);
    }
    return events;
  }
  // Numbers of the session log: 1 start, 2 stop, 3 checkpoint.
  std::vector<int> SessionLog() const {
    std::vector<int> statuses;
    for (const Event& event : Events()) {
      if (event.kind == Event::Kind::kSessionLog) statuses.push_back(event.session_status);
    }
    return statuses;
  }

  const testing::TempFolder folder_;
  const std::string dir_ = folder_ / "logdir";
};

// w -= 0.5 x per step; global_step counts.
struct Model {
  explicit Model(const DeviceFunction& device = nullptr) {
    std::optional<DeviceScope> scope;
    if (device) scope.emplace(graph, device);
    step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{2}, DType::kFloat32, initializers::Constant(10.0));
    x = ops::Placeholder(graph, DType::kFloat32, Shape{2}, "x");
    GradientDescentOptimizer optimizer(0.5);
    train = optimizer.ApplyGradients({{Gradient(x), w}}, step);
  }
  int64_t Train(Session& session) {
    session.Run({{x, Tensor::Vector<float>({1, 2})}}, {}, {train});
    return session.Run(step.value()).scalar<int64_t>();
  }

  Graph graph;
  ops::Variable step, w;
  Output x;
  Node* train;
};

// The services' first one is saved while the program is already at its steps.
void AwaitFirstCheckpoint(const Supervisor& supervisor) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (supervisor.last_checkpoint().empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

TEST_F(SupervisorTest, ASecondRunGoesOnFromTheLastStep) {
  {
    Model model;
    Supervisor supervisor(model.graph, {.logdir = dir_});
    const ManagedSession session = supervisor.managed_session();
    for (int i = 0; i < 3; ++i) model.Train(*session);
  }
  EXPECT_EQ(LatestCheckpoint(dir_), dir_ + "/model.ckpt-3");
  Model model;
  Supervisor supervisor(model.graph, {.logdir = dir_});
  const ManagedSession session = supervisor.managed_session();
  EXPECT_EQ(supervisor.last_checkpoint(), dir_ + "/model.ckpt-3");
  EXPECT_EQ(session->Run(model.w.value()).ToVector<float>(), (std::vector<float>{8.5f, 7.0f}));
  EXPECT_EQ(model.Train(*session), 4);
}

TEST_F(SupervisorTest, WithoutRestoringItStartsAnewAndKeepsWhatIsThere) {
  {
    Model model;
    Supervisor supervisor(model.graph, {.logdir = dir_});
    const ManagedSession session = supervisor.managed_session();
    for (int i = 0; i < 3; ++i) model.Train(*session);
  }
  {
    Model model;
    Supervisor supervisor(model.graph, {.logdir = dir_, .restore = false});
    const ManagedSession session = supervisor.managed_session();
    EXPECT_EQ(model.Train(*session), 1);
  }
  EXPECT_TRUE(fs::exists(dir_ + "/model.ckpt-3.index"));
  EXPECT_EQ(LatestCheckpoint(dir_), dir_ + "/model.ckpt-1");
}

TEST_F(SupervisorTest, ATornCheckpointIsPassedOver) {
  {
    Model model;
    Supervisor supervisor(model.graph, {.logdir = dir_});
    const ManagedSession session = supervisor.managed_session();
    AwaitFirstCheckpoint(supervisor);
    model.Train(*session);
    supervisor.saver()->Save(*session, dir_ + "/model.ckpt", 1);
    model.Train(*session);
  }
  fs::resize_file(dir_ + "/model.ckpt-2.data-00000-of-00001", 3);
  Model model;
  Supervisor supervisor(model.graph, {.logdir = dir_});
  const ManagedSession session = supervisor.managed_session();
  EXPECT_EQ(supervisor.last_checkpoint(), dir_ + "/model.ckpt-1");
}

TEST_F(SupervisorTest, CheckpointsThatAreNamedAndCannotBeUsedAreAnErrorAndStayNamed) {
  const std::string state = "model_checkpoint_path: \"model.ckpt-9\"\n";
  fs::create_directories(dir_);
  WriteFileAtomically(dir_ + "/checkpoint", state);
  {
    Model model;
    Supervisor supervisor(model.graph, {.logdir = dir_});
    EXPECT_THAT(MessageOf<DataLossError>([&] { supervisor.managed_session().Close(); }),
                HasSubstr("model.ckpt-9.index does not exist"));
  }
  EXPECT_EQ(ReadFile(dir_ + "/checkpoint"), state);
  Model model;
  Supervisor supervisor(model.graph, {.logdir = dir_, .restore = false});
  supervisor.managed_session().Close();
  EXPECT_EQ(LatestCheckpoint(dir_), dir_ + "/model.ckpt-0");
}

TEST_F(SupervisorTest, WritesGraphSummariesAndTheSessionLog) {
  {
    Model model;
    ops::ScalarSummary("w0", ops::Sum(model.w));
    Supervisor supervisor(model.graph, {.logdir = dir_, .save_summaries_interval = std::chrono::milliseconds(10)});
    const ManagedSession session = supervisor.managed_session();
    // Until the services have had their turns.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      model.Train(*session);
      const std::vector<Event> events = Events();
      const auto has = [&](const std::string& tag) {
        return std::any_of(events.begin(), events.end(),
                           [&](const Event& e) { return !e.values.empty() && e.values[0].tag == tag; });
      };
      if (has("w0") && has("global_step/sec")) break;
      supervisor.SummaryComputed(Tensor::Scalar(ScalarSummary("mine", 1)),
                                 0);  // fills the queue, so that it is flushed
    }
  }
  EXPECT_TRUE(fs::exists(dir_ + "/graph.pbtxt"));
  std::vector<std::string> tags;
  bool graph = false;
  for (const Event& event : Events()) {
    graph |= event.kind == Event::Kind::kGraph;
    for (const SummaryValue& value : event.values) tags.push_back(value.tag);
  }
  EXPECT_TRUE(graph);
  EXPECT_THAT(tags, Contains("w0"));
  EXPECT_THAT(tags, Contains("mine"));
  EXPECT_THAT(tags, Contains("global_step/sec"));
  const std::vector<int> log = SessionLog();
  ASSERT_GE(log.size(), 3u);
  EXPECT_EQ(log.front(), 1);
  EXPECT_THAT(log, Contains(3));
  EXPECT_EQ(log.back(), 2);
}

TEST_F(SupervisorTest, SummariesThatNeedAFeedAreLeftToTheProgram) {
  Model model;
  ops::ScalarSummary("fed", ops::Sum(model.x));
  ::testing::internal::CaptureStderr();
  Supervisor supervisor(model.graph, {.logdir = dir_, .save_summaries_interval = std::chrono::milliseconds(1)});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("'x'"));
  ManagedSession session = supervisor.managed_session();
  model.Train(*session);
  EXPECT_NO_THROW(session.Close());
}

TEST_F(SupervisorTest, AnErrorOfAServiceStopsTheLoopAndIsThrownAtTheEnd) {
  Model model;
  Supervisor supervisor(model.graph, {.logdir = dir_, .save_model_interval = std::chrono::milliseconds(10)});
  const std::string error = ErrorOf([&] {
    ManagedSession session = supervisor.managed_session();
    // A folder where the next checkpoint's index wants to be.
    fs::create_directories(dir_ + "/model.ckpt-1.index/x");
    model.Train(*session);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!supervisor.should_stop() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(supervisor.should_stop());
    session.Close();
  });
  EXPECT_THAT(error, HasSubstr("model.ckpt-1"));
}

TEST_F(SupervisorTest, TheProgramsOwnErrorComesThroughAndNothingIsSaved) {
  Model model;
  Supervisor supervisor(model.graph, {.logdir = dir_, .save_model_interval = std::chrono::seconds(1000)});
  const std::string error = ErrorOf([&] {
    const ManagedSession session = supervisor.managed_session();
    AwaitFirstCheckpoint(supervisor);
    for (int i = 0; i < 5; ++i) model.Train(*session);
    throw std::runtime_error("mine");
  });
  EXPECT_EQ(error, "mine");
  EXPECT_EQ(LatestCheckpoint(dir_), dir_ + "/model.ckpt-0");
}

TEST_F(SupervisorTest, RequestStopCarriesAnErrorUnlessTheDataIsAtItsEnd) {
  const auto run = [&](const std::exception_ptr& why) {
    Model model;
    Supervisor supervisor(model.graph, {});
    return ErrorOf([&] {
      ManagedSession session = supervisor.managed_session();
      EXPECT_FALSE(supervisor.should_stop());
      supervisor.RequestStop(why);
      EXPECT_TRUE(supervisor.should_stop());
      session.Close();
    });
  };
  EXPECT_EQ(run(nullptr), "no error");
  EXPECT_EQ(run(std::make_exception_ptr(OutOfRangeError("end of data"))), "no error");
  EXPECT_EQ(run(std::make_exception_ptr(DataLossError("torn"))), "DataLoss: torn");
}

TEST_F(SupervisorTest, TheDestructorLogsWhatCloseWouldThrow) {
  Model model;
  Supervisor supervisor(model.graph, {});
  ::testing::internal::CaptureStderr();
  {
    const ManagedSession session = supervisor.managed_session();
    supervisor.RequestStop(std::make_exception_ptr(DataLossError("torn")));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("DataLoss: torn"));
}

TEST_F(SupervisorTest, InitFnRunsAfterTheInitializersAndNotAfterARestore) {
  int calls = 0;
  const auto run = [&](float expected) {
    Model model;
    Node* change = model.w.Assign(ops::Const(model.graph, Tensor::Vector<float>({3, 4})));
    Supervisor supervisor(model.graph, {.logdir = dir_, .init_fn = [&](Session& session) {
                                          ++calls;
                                          session.Run(change);
                                        }});
    ManagedSession session = supervisor.managed_session();
    EXPECT_EQ(session->Run(model.w.value()).ToVector<float>()[0], expected);
    model.Train(*session);
    session.Close();
  };
  run(3.0f);
  run(2.5f);
  EXPECT_EQ(calls, 1);
}

TEST_F(SupervisorTest, AnIncompleteInitializationIsNamed) {
  Graph graph;
  const ops::Variable a = ops::GetVariable(graph, "a", Shape{}, DType::kFloat32, initializers::Zeros());
  ops::GetVariable(graph, "forgotten", Shape{}, DType::kFloat32, initializers::Zeros());
  Supervisor supervisor(graph, {.init_op = a.initializer()});
  const std::string error = ErrorOf([&] { const ManagedSession session = supervisor.managed_session(); });
  EXPECT_THAT(error, HasSubstr("FailedPrecondition"));
  EXPECT_THAT(error, HasSubstr("forgotten"));
  EXPECT_THROW(ops::Const(graph, 1.0f), FailedPreconditionError);  // the graph is finalized
}

TEST_F(SupervisorTest, OnlyLocalVariablesAreNotSaved) {
  Graph graph;
  ops::Variable seen(graph, Shape{}, initializers::Zeros(), {.name = "seen", .trainable = false, .local = true});
  Supervisor supervisor(graph, {.logdir = dir_});
  EXPECT_EQ(supervisor.saver(), nullptr);
  ManagedSession session = supervisor.managed_session();
  session.Close();
  EXPECT_EQ(supervisor.last_checkpoint(), "");
}

TEST_F(SupervisorTest, NegativeIntervalsAreRefused) {
  Model model;
  EXPECT_THAT(
      ErrorOf([&] { Supervisor(model.graph, {.save_model_interval = std::chrono::seconds(-3)}); }),
      HasSubstr("InvalidArgument: [supervisor] expected save_model_interval of at least 0 (0: never); got -3000 ms"));
}

TEST_F(SupervisorTest, AWorkerNeedsDevicesForItsVariables) {
  Model model;
  EXPECT_THAT(ErrorOf([&] { Supervisor(model.graph, {.is_chief = false}); }), HasSubstr("global_step, w"));
}

DeviceFunction Replica(const LocalCluster& cluster, int task) {
  return ReplicaDeviceSetter({.worker_device = TaskName("worker", task), .cluster = cluster.spec()});
}

TEST_F(SupervisorTest, WorkersWaitForTheChiefAndStepsAreNeverLost) {
  constexpr int kWorkers = 3;
  constexpr int kSteps = 20;
  LocalCluster cluster({{"ps", 2}, {"worker", kWorkers}});
  std::vector<std::thread> threads;
  std::atomic<int> ended{0};
  for (int task = kWorkers - 1; task >= 0; --task) {
    threads.emplace_back([&, task] {
      Server& server = cluster.server("worker", task);
      Model model(Replica(cluster, task));
      Supervisor supervisor(model.graph, {.is_chief = server.is_chief(), .logdir = task == 0 ? dir_ : ""});
      const ManagedSession session = supervisor.managed_session(server.Target());
      for (int i = 0; i < kSteps; ++i) model.Train(*session);
      ++ended;
      if (task > 0) return;
      // The last save sees all steps.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (ended < kWorkers && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(LatestCheckpoint(dir_), StrCat(dir_, "/model.ckpt-", kWorkers * kSteps));

  // Two others go on from it; each variable lies on the ps that round robin says.
  Model model(Replica(cluster, 0));
  EXPECT_EQ(model.step.handle().node->device(), "/job:ps/task:0");
  EXPECT_EQ(model.w.handle().node->device(), "/job:ps/task:1");
  Supervisor supervisor(model.graph, {.logdir = dir_});
  const ManagedSession session = supervisor.managed_session(cluster.target("worker", 0));
  EXPECT_EQ(model.Train(*session), kWorkers * kSteps + 1);
}

TEST_F(SupervisorTest, AWorkerThatWaitsTooLongSaysForWhat) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  Model model(Replica(cluster, 1));
  Supervisor supervisor(model.graph, {.is_chief = false, .max_wait = std::chrono::milliseconds(200)});
  const std::string error =
      ErrorOf([&] { const ManagedSession session = supervisor.managed_session(cluster.target("worker", 1)); });
  EXPECT_THAT(error, HasSubstr("DeadlineExceeded"));
  EXPECT_THAT(error, HasSubstr("Session was not ready after waiting 0.2 secs"));
  EXPECT_THAT(error, HasSubstr("global_step, w"));
}

TEST_F(SupervisorTest, ADeadParameterServerEndsTheRunByName) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  Model model(Replica(cluster, 0));
  Supervisor supervisor(model.graph, {.logdir = dir_});
  const std::string error = ErrorOf([&] {
    const ManagedSession session = supervisor.managed_session(cluster.target("worker", 0));
    AwaitFirstCheckpoint(supervisor);
    model.Train(*session);
    supervisor.saver()->Save(*session, dir_ + "/model.ckpt", 1);
    cluster.Stop("ps", 1);
    for (int i = 0; i < 1000; ++i) model.Train(*session);
  });
  EXPECT_THAT(error, HasSubstr("Unavailable"));
  EXPECT_THAT(error, HasSubstr("/job:ps/replica:0/task:1"));
  EXPECT_EQ(LatestCheckpoint(dir_), dir_ + "/model.ckpt-1");
}

TEST_F(SupervisorTest, TheChiefSaysWhenTrainingIsDone) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  std::thread ps([&] { cluster.server("ps", 0).Join(); });
  {
    Server& server = cluster.server("worker", 0);
    Model model(Replica(cluster, 0));
    Supervisor supervisor(model.graph, {.server = &server});
    const ManagedSession session = supervisor.managed_session(server.Target());
    model.Train(*session);
  }
  ps.join();  // the test's time limit is its deadline
}

TEST_F(SupervisorTest, ASecondChiefIsRefusedByTheNameOfTheFirst) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  Model model(Replica(cluster, 0));
  Supervisor supervisor(model.graph, {.server = &cluster.server("worker", 0)});
  ManagedSession first = supervisor.managed_session(cluster.target("worker", 0));
  model.Train(*first);
  Model other(Replica(cluster, 1));
  Supervisor second(
      other.graph,
      {.is_chief = true, .chief_wait = std::chrono::milliseconds(300), .server = &cluster.server("worker", 1)});
  EXPECT_THAT(ErrorOf([&] { const ManagedSession session = second.managed_session(cluster.target("worker", 1)); }),
              AllOf(HasSubstr("AlreadyExists: [supervisor] expected one chief"), HasSubstr("/job:worker/task:0"),
                    HasSubstr("/job:worker/task:1")));
  EXPECT_EQ(model.Train(*first), 2) << "the first one was not disturbed";
  first.Close();
  // When it has ended, there may be another one.
  ManagedSession next = second.managed_session(cluster.target("worker", 1));
  other.Train(*next);
  next.Close();
}

TEST_F(SupervisorTest, AWorkerWithOtherNumbersIsRefused) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  Model model(Replica(cluster, 0));
  AddTrainingSetting(model.graph, "the number of replicas", 2);
  Supervisor supervisor(model.graph, {.server = &cluster.server("worker", 0)});
  ManagedSession chief = supervisor.managed_session(cluster.target("worker", 0));
  for (const int number : {3, 2}) {
    Model of_worker(Replica(cluster, 1));
    AddTrainingSetting(of_worker.graph, "the number of replicas", number);
    Supervisor worker(of_worker.graph, {.is_chief = false, .server = &cluster.server("worker", 1)});
    const auto begin = [&] { worker.managed_session(cluster.target("worker", 1)).Close(); };
    if (number == 2) {
      begin();
      continue;
    }
    EXPECT_THAT(ErrorOf(begin), AllOf(HasSubstr("InvalidArgument: [supervisor] expected the same training"),
                                      HasSubstr("the number of replicas is 3 in /job:worker/task:1 and 2 in the chief "
                                                "(/job:worker/task:0)")));
  }
  chief.Close();
}

TEST_F(SupervisorTest, AShardedSaveIsWrittenByEachParameterServer) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  Model model(Replica(cluster, 0));
  Saver saver(model.graph, {.sharded = true});
  Supervisor supervisor(model.graph, {.logdir = dir_, .saver = &saver});
  {
    const ManagedSession session = supervisor.managed_session(cluster.target("worker", 0));
    model.Train(*session);
  }
  EXPECT_TRUE(fs::exists(dir_ + "/model.ckpt-1.data-00001-of-00002"));
  VerifyCheckpoint(dir_ + "/model.ckpt-1");
}

TEST(CoordinatorTest, LoopsRunAtOnceAndAgainUntilTheStop) {
  Coordinator coordinator;
  std::atomic<int> calls{0};
  coordinator.Loop("fast", std::chrono::milliseconds(1), [&] { ++calls; });
  std::atomic<int> slow{0};
  coordinator.Loop("slow", std::chrono::hours(300), [&] { ++slow; });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((calls < 3 || slow < 1) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.AwaitEnd(std::chrono::minutes(1)));
  coordinator.Join();
  EXPECT_GE(calls, 3);
  EXPECT_EQ(slow, 1);
}

TEST(CoordinatorTest, TheFirstErrorStopsAllAndIsKept) {
  Coordinator coordinator;
  coordinator.Loop("bad", std::chrono::seconds(1), [] { throw DataLossError("first"); });
  EXPECT_TRUE(coordinator.WaitForStop(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  coordinator.RequestStop(std::make_exception_ptr(DataLossError("second")));
  coordinator.Join();
  EXPECT_EQ(ErrorOf([&] { std::rethrow_exception(coordinator.exception()); }), "DataLoss: first");
}

TEST(CoordinatorTest, AThreadThatDoesNotEndIsReported) {
  Coordinator coordinator;
  std::atomic<bool> release{false};
  coordinator.Loop("stuck", std::chrono::seconds(1), [&] {
    while (!release) std::this_thread::yield();
  });
  coordinator.RequestStop();
  EXPECT_FALSE(coordinator.AwaitEnd(std::chrono::milliseconds(10)));
  release = true;
  EXPECT_TRUE(coordinator.AwaitEnd(std::chrono::minutes(1)));
}

}  // namespace
}  // namespace cohort::train
