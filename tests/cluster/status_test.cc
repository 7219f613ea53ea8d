// Asks the tasks of a cluster in this process for their status, as `cohort status` does, and reads their metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cohort/cluster/port_reservation.h"
#include "cohort/cluster/status/cluster_file.h"
#include "cohort/cluster/status/status_client.h"
#include "cohort/cluster/testing/http_client.h"
#include "cohort/cluster/testing/metrics_reader.h"
#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using testing::Fetch;
using ::testing::HasSubstr;
using testing::LocalCluster;
using ::testing::Not;
using ::testing::StartsWith;
using testing::VariableOn;
using Answer = TaskReport::Answer;

StatusClientOptions ClientOptions() {
  return {.time_limit = std::chrono::seconds(30), .token = LocalCluster::FastOptions().token};
}

std::string AddressOf(LocalCluster& cluster, const std::string& job, int task) {
  return cluster.spec().task_address(job, task);
}

// A variable and a global step on the ps, which a step of a worker's session changes.
struct Training {
  Graph g;
  ops::Variable w, step;
  Node* init = nullptr;
  Node* train = nullptr;

  Training() {
    w = VariableOn(g, "/job:ps/task:0", ops::Const(g, std::vector<float>(1000, 1)), "w");
    step = VariableOn(g, "/job:ps/task:0", ops::Const(g, int64_t{0}), "global_step");
    init = ops::GlobalVariablesInitializer(g);
    const DeviceScope scope(g, "/job:worker/task:0");
    const ControlDependencies after(g, {w.AssignAdd(w.value() * 0.5f)});
    train = step.AssignAdd(ops::Const(g, int64_t{1}));
  }
};

const TaskReport& Of(const ClusterReport& report, const std::string& job) {
  for (const TaskReport& task : report.tasks) {
    if (task.job == job) return task;
  }
  throw NotFoundError("no " + job);
}

// A step counts just after its master has its result. So asks until `steps` have ended on every task that has steps.
ClusterReport AskAfter(StatusClient& client, uint64_t steps) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (;;) {
    ClusterReport report = client.Ask();
    const bool all = std::ranges::all_of(report.tasks, [&](const TaskReport& task) {
      return !task.answered() || task.status.steps == 0 || task.status.steps >= steps;
    });
    if (all || std::chrono::steady_clock::now() >= deadline) return report;
  }
}

const PeerStatus* PeerOf(const TaskStatus& status, const std::string& task) {
  for (const PeerStatus& peer : status.peers) {
    if (peer.task == task) return &peer;
  }
  return nullptr;
}

TEST(StatusTest, TheFiguresOfATraining) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Training training;
  Session session(training.g, cluster.target("worker", 0));
  session.Run(training.init);
  for (int i = 0; i < 20; ++i) session.Run(training.train);

  StatusClient client(AddressOf(cluster, "worker", 0), ClientOptions());
  EXPECT_EQ(client.cluster(), cluster.spec());
  const ClusterReport report = AskAfter(client, 20);
  ASSERT_EQ(report.tasks.size(), 2u);
  const TaskReport& ps = Of(report, "ps");
  ASSERT_EQ(ps.answer, Answer::kStatus) << ps.why_not;
  EXPECT_EQ(ps.status.task, "/job:ps/replica:0/task:0");
  EXPECT_EQ(ps.status.address, AddressOf(cluster, "ps", 0));
  EXPECT_EQ(ps.status.pid, getpid());
  EXPECT_FALSE(ps.status.is_chief);
  EXPECT_EQ(ps.status.global_step, 20);
  EXPECT_GE(ps.status.steps, 20u);
  EXPECT_LE(ps.status.steps, 21u);
  EXPECT_EQ(ps.status.variables, 2u);
  EXPECT_EQ(ps.status.variable_bytes, 4008u);
  EXPECT_EQ(ps.status.sessions, 1u);
  EXPECT_GT(ps.status.received_bytes, 0u);
  EXPECT_GT(ps.status.memory_bytes, 1'000'000u);
  const PeerStatus* worker = PeerOf(ps.status, "/job:worker/replica:0/task:0");
  ASSERT_NE(worker, nullptr);
  EXPECT_TRUE(worker->connected);
  EXPECT_GT(worker->received_bytes, 0u);
  const TaskReport& chief = Of(report, "worker");
  ASSERT_EQ(chief.answer, Answer::kStatus) << chief.why_not;
  EXPECT_TRUE(chief.status.is_chief);
  EXPECT_EQ(chief.status.global_step, std::nullopt);
  EXPECT_NE(chief.status.incarnation, ps.status.incarnation);
  EXPECT_TRUE(JudgeCluster(report).well);
}

// The figures of a task stay when its sessions have ended, and variables of a container that was cleared are gone.
TEST(StatusTest, StepsOfClosedSessionsCount) {
  LocalCluster cluster({{"ps", 1}});
  for (int round = 0; round < 3; ++round) {
    Graph g;
    const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 1.0f), "v");
    Session session(g, cluster.target("ps", 0));
    session.Run(ops::GlobalVariablesInitializer(g));
    session.Run(v.value());
  }
  const TaskStatus status = StatusClient(cluster.spec(), ClientOptions()).Ask().tasks.at(0).status;
  EXPECT_EQ(status.steps, 6u);
  EXPECT_EQ(status.sessions, 0u);
  EXPECT_EQ(status.activity, TaskActivity::kRunning);  // within the last second
}

TEST(StatusTest, RatesAndSharesAppearWhileStepsRun) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Training training;
  Session session(training.g, cluster.target("worker", 0));
  session.Run(training.init);
  StatusClient client(cluster.spec(), ClientOptions());
  TaskStatus ps;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  do {
    for (int i = 0; i < 50; ++i) session.Run(training.train);
    ps = Of(client.Ask(), "ps").status;
  } while ((ps.steps_per_second == 0 || ps.global_steps_per_second == 0 || ps.received_per_second == 0) &&
           std::chrono::steady_clock::now() < deadline);
  EXPECT_GT(ps.steps_per_second, 0);
  EXPECT_GT(ps.global_steps_per_second, 0);
  EXPECT_GT(ps.sent_per_second, 0);
  EXPECT_GT(ps.received_per_second, 0);
  EXPECT_EQ(ps.activity, TaskActivity::kRunning);
  EXPECT_LE(ps.shares.data + ps.shares.compute + ps.shares.wait, 1.0 + 1e-9);
}

TEST(StatusTest, StatesOfATask) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  StatusClient client(cluster.spec(), ClientOptions());
  ClusterReport report = client.Ask();
  EXPECT_EQ(Of(report, "ps").status.activity, TaskActivity::kWaitingForChief);
  EXPECT_EQ(report.tasks.at(1).status.activity, TaskActivity::kStarting);  // it is the chief
  cluster.server("worker", 0).AnnounceDone();
  report = client.Ask();
  EXPECT_EQ(Of(report, "ps").status.activity, TaskActivity::kStopping);
}

TEST(StatusTest, AStepThatWaitsIsListed) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph g;
  Output taken;
  {
    const DeviceScope ps(g, "/job:ps/task:0");
    const ops::FIFOQueue queue(g, {DType::kFloat32}, {.shapes = {Shape{}}});
    taken = queue.Dequeue()[0];
  }
  const DeviceScope worker(g, "/job:worker/task:0");
  const Output used = taken + 1.0f;
  auto session = std::make_unique<Session>(g, cluster.target("worker", 0));
  std::thread waiter([&] { EXPECT_THROW(session->Run(used), Error); });
  StatusClient client(cluster.spec(), ClientOptions());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  ClusterReport report;
  bool waits = false;
  while (!waits && std::chrono::steady_clock::now() < deadline) {
    report = client.Ask();
    waits = !Of(report, "ps").status.running.empty() && !Of(report, "worker").status.running.empty() &&
            !Of(report, "ps").status.running[0].waits.empty() && !Of(report, "worker").status.running[0].waits.empty();
  }
  ASSERT_TRUE(waits);
  const StepStatus& on_ps = Of(report, "ps").status.running[0];
  EXPECT_TRUE(on_ps.may_wait);
  EXPECT_THAT(on_ps.waits[0].what, HasSubstr("Dequeue"));
  const StepStatus& on_worker = Of(report, "worker").status.running[0];
  EXPECT_EQ(on_worker.session, on_ps.session);
  EXPECT_EQ(on_worker.step, on_ps.step);
  EXPECT_TRUE(on_worker.waits[0].of_value);
  EXPECT_EQ(on_worker.waits[0].task, "/job:ps/replica:0/task:0");
  // However long it waits: the queue explains it.
  EXPECT_TRUE(JudgeCluster(report, {.waiting = std::chrono::milliseconds(0)}).well);
  session->Close();
  waiter.join();
}

TEST(StatusTest, ATaskThatIsGoneIsNamed) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.Stop("ps", 0);
  const ClusterReport report = StatusClient(AddressOf(cluster, "worker", 0), ClientOptions()).Ask();
  EXPECT_EQ(Of(report, "ps").answer, Answer::kGone);
  EXPECT_EQ(Of(report, "worker").answer, Answer::kStatus);
  EXPECT_THAT(JudgeCluster(report).text, StartsWith("ps 0 is gone: no process answers at "));
}

TEST(StatusTest, AClientWithAnotherTokenLearnsNothing) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  StatusClientOptions stranger = ClientOptions();
  stranger.token = "the-token-of-another-job";
  const std::string error =
      MessageOf<PermissionDeniedError>([&] { StatusClient(AddressOf(cluster, "worker", 0), stranger); });
  EXPECT_THAT(error, Not(HasSubstr("/job:ps")));
  EXPECT_THAT(error, Not(HasSubstr(AddressOf(cluster, "ps", 0))));
  for (const TaskReport& task : StatusClient(cluster.spec(), stranger).Ask().tasks) {
    EXPECT_EQ(task.answer, Answer::kRefused);
    EXPECT_EQ(task.status.pid, 0);
  }
}

// A program may have ops of its own, which `cohort status` does not know.
TEST(StatusTest, TasksThatKnowOtherOpsAnswer) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  OpRegistry::Global().Register(OpDef("AnOpThatTheTasksDoNotKnow"));  // the tasks have hashed the ops already
  StatusClient client(AddressOf(cluster, "worker", 0), ClientOptions());
  for (const TaskReport& task : client.Ask().tasks) EXPECT_EQ(task.answer, Answer::kStatus) << task.why_not;
}

TEST(StatusTest, TheDumpOfATask) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  StatusClient client(AddressOf(cluster, "worker", 0), ClientOptions());
  EXPECT_THAT(client.Dump("ps", 0), HasSubstr("/job:ps/replica:0/task:0"));
  EXPECT_THROW(client.Dump("ps", 1), NotFoundError);
  cluster.Stop("ps", 0);
  EXPECT_THROW(client.Dump("ps", 0), UnavailableError);
}

TEST(StatusTest, ManyQuestionsAtOnce) {
  LocalCluster cluster({{"ps", 2}, {"worker", 2}});
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      StatusClient client(cluster.spec(), ClientOptions());
      for (int j = 0; j < 25; ++j) {
        for (const TaskReport& task : client.Ask().tasks) EXPECT_EQ(task.answer, Answer::kStatus) << task.why_not;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
}

TEST(StatusTest, MetricsOfAServer) {
  ServerOptions options = LocalCluster::FastOptions();
  options.metrics_port = 0;
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  Training training;
  Session session(training.g, cluster.target("worker", 0));
  session.Run(training.init);
  session.Run(training.train);
  ASSERT_TRUE(cluster.server("ps", 0).metrics_port().has_value());
  const int port = *cluster.server("ps", 0).metrics_port();
  StatusClient client(cluster.spec(), ClientOptions());
  AskAfter(client, 1);
  const testing::Metrics metrics = testing::ReadMetrics(Fetch(port, "/metrics").body);
  EXPECT_EQ(metrics.at("cohort_global_step{job=\"ps\",task=\"0\"}"), 1);
  EXPECT_GE(metrics.at("cohort_steps_total{job=\"ps\",task=\"0\"}"), 1);
  const testing::HttpAnswer health = Fetch(port, "/healthz");
  EXPECT_EQ(health.code, 200);
  EXPECT_EQ(health.body, "ok\n");
  cluster.Stop("ps", 0);
  EXPECT_EQ(Fetch(port, "/healthz").code, 0);
}

TEST(StatusTest, ThePortOfTheMetricsMayComeFromTheEnvironment) {
  EXPECT_EQ(LocalCluster({{"ps", 1}}).server("ps", 0).metrics_port(), std::nullopt);
  setenv("COHORT_METRICS_PORT", "0", 1);
  EXPECT_TRUE(LocalCluster({{"ps", 1}}).server("ps", 0).metrics_port().has_value());
  setenv("COHORT_METRICS_PORT", "many", 1);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                LocalCluster({{"ps", 1}});
              }),
              AllOf(HasSubstr("COHORT_METRICS_PORT"), HasSubstr("many")));
  // The second server of a process goes without.
  const PortReservation port;
  setenv("COHORT_METRICS_PORT", StrCat(port.port()).c_str(), 1);
  LocalCluster both({{"ps", 2}});
  EXPECT_EQ(both.server("ps", 0).metrics_port(), port.port());
  EXPECT_EQ(both.server("ps", 1).metrics_port(), std::nullopt);
  unsetenv("COHORT_METRICS_PORT");
  ServerOptions options = LocalCluster::FastOptions();
  options.metrics_port = port.port();
  EXPECT_THROW(LocalCluster({{"ps", 1}}, options), UnavailableError);
}

// The chief of a Supervisor and of a MonitoredTrainingSession writes the addresses into its folder.
TEST(StatusTest, TheChiefWritesTheClusterFile) {
  for (const bool monitored : {false, true}) {
    const testing::TempFolder folder;
    LocalCluster cluster({{"worker", 1}});
    Graph g;
    const ops::Variable step = ops::GetOrCreateGlobalStep(g);
    const std::string target = cluster.target("worker", 0);
    if (monitored) {
      train::MonitoredSession session =
          train::MonitoredTrainingSession(g, {.master = target, .checkpoint_dir = folder / "logs"});
      session.Run(step.value());
    } else {
      train::Supervisor supervisor(g, {.logdir = folder / "logs"});
      supervisor.managed_session(target)->Run(step.value());
    }
    EXPECT_EQ(ReadClusterFile(folder / "logs").cluster, cluster.spec());
  }
}

}  // namespace
}  // namespace cohort
