// SyncReplicasOptimizer on clusters in this process: one parameter server and some workers, each with a graph and a
// MonitoredSession of its own.
#include "cohort/train/sync_replicas_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/step_clock.h"
#include "cohort/registration.h"
#include "cohort/runtime/testing/waiting_runs.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/monitored_session.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using cohort::testing::LocalCluster;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kSyncRate = 0.5f;
constexpr RunOptions kSyncPatience{.timeout = std::chrono::seconds(60)};

// One worker. The gradient of w is the fed x, so an update adds -0.5 * mean(x) to w.
struct SyncWorker {
  SyncWorker(LocalCluster* cluster, int index, const SyncReplicasOptions& options, int num_tokens = 0,
             bool failing_loop = false)
      : cluster(cluster), index(index) {
    RegisterAll();
    std::optional<DeviceScope> scope;
    if (cluster != nullptr) {
      scope.emplace(graph, ReplicaDeviceSetter(
                               {.worker_device = StrCat("/job:worker/task:", index), .cluster = cluster->spec()}));
    }
    step = ops::GetOrCreateGlobalStep(graph);
    w = ops::GetVariable(graph, "w", Shape{}, DType::kFloat32, initializers::Constant(0.0));
    x = ops::Placeholder(graph, DType::kFloat32, Shape(), "x");
    sgd = std::make_unique<GradientDescentOptimizer>(failing_loop ? Hyperparameter(RateThatFailsAfterOneUpdate())
                                                                  : Hyperparameter(kSyncRate));
    sync = std::make_unique<SyncReplicasOptimizer>(*sgd, options);
    train = sync->Minimize(w.value() * x, step);
    if (options.staleness == 0) {
      stale = sync->num_stale_gradients();
      tokens = sync->token_queue().Size();
      const Output accumulator = graph.FindOutput("sync_replicas/w/grad_accum");
      const ColocateWith beside(graph, *accumulator.node);
      count = graph.Op("ResourceAccumulatorNumAccumulated").Input(accumulator).Finish1();
    } else {
      staleness = ops::StepClockTakeStaleness(graph.FindOutput("sync_step_clock"));
    }
    hook = sync->MakeSessionRunHook(index == 0, num_tokens);
  }

  Output RateThatFailsAfterOneUpdate() {
    const ControlDependencies after(graph, {ops::Assert(ops::Less(step.value(), int64_t{1}), {step.value()})});
    return ops::Identity(ops::Const(graph, kSyncRate));
  }

  SyncWorker& Open() {
    session.reset(new MonitoredSession(
        MonitoredTrainingSession(graph, {.master = cluster == nullptr ? "" : cluster->target("worker", index),
                                         .is_chief = index == 0,
                                         .hooks = {hook},
                                         .max_wait = max_wait})));
    return *this;
  }
  void Step(float value) { session->Run({{x, Tensor::Scalar(value)}}, {}, {train}, kSyncPatience); }
  std::future<void> StepLater(float value) {
    return std::async(std::launch::async, [this, value] { Step(value); });
  }
  float value_of_w() { return session->Run({}, {w.value()})[0].scalar<float>(); }
  int64_t global_step() { return session->Run({}, {step.value()})[0].scalar<int64_t>(); }
  int64_t num_stale() { return session->Run({}, {stale})[0].scalar<int64_t>(); }
  int32_t num_tokens() { return session->Run({}, {tokens})[0].scalar<int32_t>(); }

  LocalCluster* const cluster;  // null: without a cluster
  const int index;
  Graph graph;
  ops::Variable step, w;
  Output x, stale, tokens, count, staleness;
  std::unique_ptr<Optimizer> sgd;
  std::unique_ptr<SyncReplicasOptimizer> sync;
  Node* train = nullptr;
  std::shared_ptr<SessionRunHook> hook;
  std::chrono::milliseconds max_wait = std::chrono::minutes(2);
  std::unique_ptr<MonitoredSession> session;
};

TEST(SyncReplicasTest, AnUpdateIsTheMeanOfAllWorkersGradients) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
  SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
  chief.Open();
  worker.Open();
  float expected = 0;
  for (int i = 1; i <= 5; ++i) {
    const auto x0 = static_cast<float>(i);
    const auto x1 = static_cast<float>(i * i + 1);
    std::future<void> other = worker.StepLater(x1);
    chief.Step(x0);
    other.get();
    expected -= kSyncRate * ((x0 + x1) / 2.0f);
    EXPECT_EQ(chief.value_of_w(), expected);
    EXPECT_EQ(worker.global_step(), i) << "the global step counts updates";
  }
  EXPECT_EQ(chief.num_stale(), 0);
  worker.session->Close();
  chief.session->Close();
}

// Each edge between a worker and a parameter server is a message of its own, unless it comes together with others. So
// one parameter server keeps the local step. With several of them the local step travels with the gradient.
TEST(SyncReplicasTest, AStepHasNoMessagesThatItDoesNotNeed) {
  for (const int servers : {1, 2}) {
    LocalCluster cluster({{"ps", servers}, {"worker", 2}});
    const SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
    const std::string place = servers == 1 ? "/job:ps/task:0" : "/job:worker/task:1";
    EXPECT_EQ(worker.train->device(), place);
    EXPECT_THAT(worker.train->control_inputs(), ElementsAre());
    int applied = 0;
    for (const auto& node : worker.graph.nodes()) {
      if (node->op().name() != "ResourceAccumulatorApplyGradient") continue;
      ++applied;
      const Node* local_step = node->inputs().at(1).node;
      const Node* gradient = node->inputs().at(2).node;
      EXPECT_EQ(local_step->device(), place);
      if (servers == 1) EXPECT_THAT(local_step->control_inputs(), ElementsAre());
      if (servers == 2) EXPECT_THAT(local_step->control_inputs(), ElementsAre(gradient));
    }
    EXPECT_EQ(applied, 1);
  }
}

// The loop of the chief is one step of the parameter server, which repeats it. So no update needs a message of the
// chief.
TEST(SyncReplicasTest, TheChiefSendsNothingForAnUpdate) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 1});
  chief.Open();
  const auto node = ServerDirectory::Global().Find(cluster.target("ps", 0));
  // Waits until the parameter server runs one step only, and returns the number of that step.
  const auto loop = [&node] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      const std::vector<RunningStep> running = node->local_task()->RunningSteps();
      if (running.size() == 1) return running.front().step;
      if (std::chrono::steady_clock::now() > deadline) return int64_t{-1};
      std::this_thread::yield();
    }
  };
  const int64_t before = loop();
  EXPECT_GT(before, 0);
  const int64_t steps = node->local_task()->num_steps();
  for (int i = 0; i < 5; ++i) chief.Step(1);
  EXPECT_EQ(chief.value_of_w(), -kSyncRate * 5);
  EXPECT_EQ(loop(), before);
  EXPECT_GE(node->local_task()->num_steps(), steps + 5 + 4) << "an update counts as a step of the parameter server";
  chief.session->Close();
}

TEST(SyncReplicasTest, ABackupWorkersGradientIsStale) {
  LocalCluster cluster({{"ps", 1}, {"worker", 3}});
  const SyncReplicasOptions options{.replicas_to_aggregate = 2, .total_num_replicas = 3};
  SyncWorker chief(&cluster, 0, options);
  SyncWorker worker(&cluster, 1, options);
  SyncWorker slow(&cluster, 2, options);
  chief.Open();
  worker.Open();
  slow.Open();
  std::future<void> other = worker.StepLater(3);
  chief.Step(1);
  other.get();
  slow.Step(1000);  // computed at step 0; the global step is 1
  EXPECT_EQ(slow.num_stale(), 1);
  EXPECT_EQ(slow.global_step(), 1);
  EXPECT_EQ(slow.value_of_w(), -kSyncRate * 2.0f);
  other = slow.StepLater(5);  // its token is of step 1
  chief.Step(7);
  other.get();
  EXPECT_EQ(chief.value_of_w(), -kSyncRate * 2.0f - kSyncRate * 6.0f);
  EXPECT_EQ(chief.num_stale(), 1);
}

TEST(SyncReplicasTest, AWorkerMayMakeSeveralGradientsForAnUpdate) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 3, .total_num_replicas = 1}, /*num_tokens=*/2);
  chief.Open();
  for (const float x : {1.0f, 2.0f, 6.0f}) chief.Step(x);
  EXPECT_EQ(chief.value_of_w(), -kSyncRate * 3.0f);
  EXPECT_EQ(chief.global_step(), 1);
}

TEST(SyncReplicasTest, WorksWithoutACluster) {
  SyncWorker chief(nullptr, 0, {.replicas_to_aggregate = 1});
  chief.Open();
  for (const float x : {1.0f, 2.0f, 6.0f}) chief.Step(x);
  EXPECT_EQ(chief.value_of_w(), -kSyncRate * 9.0f);
  chief.session->Close();
}

TEST(SyncReplicasTest, TheEndOfTheChiefEndsTheWorkersThatWait) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
  SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
  chief.Open();
  worker.Open();
  std::future<void> waiting = worker.StepLater(1);
  chief.session->Close();
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { waiting.get(); }), HasSubstr("FIFOQueue 'sync_token_q' is closed"));
  worker.session->Close();
}

TEST(SyncReplicasTest, TheTokenOfAWorkerThatEndsReturns) {
  for (const bool dies : {false, true}) {
    LocalCluster cluster({{"ps", 1}, {"worker", 2}});
    SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
    SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
    chief.Open();
    worker.Open();
    std::future<void> other = worker.StepLater(3);
    chief.Step(1);
    other.get();
    // Each worker holds a token of step 1. Without that of the lost one, the next update would lack a gradient.
    dies ? cluster.Stop("worker", 1) : worker.session->Close();
    chief.Step(4);
    chief.Step(6);
    EXPECT_EQ(chief.value_of_w(), -kSyncRate * 2.0f - kSyncRate * 5.0f);
    EXPECT_EQ(chief.global_step(), 2);
  }
}

TEST(SyncReplicasTest, AnErrorOfTheChiefsLoopIsTheErrorOfItsStep) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 1}, 0, /*failing_loop=*/true);
  chief.Open();
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                for (int i = 0; i < 3; ++i) chief.Step(1);
              }),
              ::testing::AllOf(HasSubstr("the chief's loop"), HasSubstr("assertion failed")));
  EXPECT_EQ(MessageOf<InvalidArgumentError>([&] { chief.session->Close(); }).find("[train/sync replicas]"), 0u);
}

TEST(SyncReplicasTest, TrainingGoesOnAfterTheParameterServerIsStartedAgain) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
  SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
  chief.Open();
  worker.Open();
  std::future<void> other = worker.StepLater(3);
  chief.Step(1);
  other.get();
  cluster.Restart("ps", 0);  // without a checkpoint: the variables begin again
  other = worker.StepLater(5);
  chief.Step(9);
  other.get();
  EXPECT_EQ(chief.value_of_w(), -kSyncRate * 7.0f);
  EXPECT_EQ(worker.global_step(), 1);
  worker.session->Close();
  chief.session->Close();
}

TEST(SyncReplicasTest, ANewSessionOfTheChiefEmptiesTheQueueBeforeItFillsIt) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const std::string target = cluster.target("worker", 0);
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 4}, /*num_tokens=*/4);
  chief.hook->Begin(chief.graph);
  Node* init = ops::GlobalVariablesInitializer(chief.graph);
  for (int i = 0; i < 3; ++i) {
    Coordinator coordinator;
    Session session(chief.graph, target);
    if (i == 0) session.Run(init);
    chief.hook->AfterCreateSession(session, coordinator);
    EXPECT_EQ(session.Run(chief.tokens).scalar<int32_t>(), 4) << "session " << i;
    if (i == 1) chief.hook->End(session);  // closes the queue; the next session opens it
  }
}

TEST(SyncReplicasTest, SparseRowsAreDividedByTheWorkersThatHeldThem) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  struct Rows {
    Rows(LocalCluster* cluster, int index) {
      const DeviceScope scope(graph, ReplicaDeviceSetter({.worker_device = StrCat("/job:worker/task:", index),
                                                          .cluster = cluster->spec()}));
      const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
      table = ops::GetVariable(graph, "table", Shape{4, 1}, DType::kFloat32, initializers::Constant(0.0));
      rows = ops::Placeholder(graph, DType::kInt32, Shape{2}, "rows");
      sync = std::make_unique<SyncReplicasOptimizer>(sgd, SyncReplicasOptions{.replicas_to_aggregate = 2});
      train = sync->Minimize(ops::Sum(table.Gather(rows)) * static_cast<float>(index + 1), step);
      session.reset(
          new MonitoredSession(MonitoredTrainingSession(graph, {.master = cluster->target("worker", index),
                                                                .is_chief = index == 0,
                                                                .hooks = {sync->MakeSessionRunHook(index == 0, 0)}})));
    }
    void Step(const std::vector<int32_t>& indices) {
      session->Run({{rows, Tensor::Vector(indices)}}, {}, {train}, kSyncPatience);
    }
    Graph graph;
    GradientDescentOptimizer sgd{kSyncRate};
    ops::Variable table;
    Output rows;
    std::unique_ptr<SyncReplicasOptimizer> sync;
    Node* train = nullptr;
    std::unique_ptr<MonitoredSession> session;
  };
  Rows chief(&cluster, 0);   // each row that it holds has the gradient 1
  Rows worker(&cluster, 1);  // each row that it holds has the gradient 2
  std::future<void> other = std::async(std::launch::async, [&] { worker.Step({1, 2}); });
  chief.Step({0, 1});
  other.get();
  EXPECT_THAT(chief.session->Run({}, {chief.table.value()})[0].ToVector<float>(),
              ElementsAre(-kSyncRate * 1.0f, -kSyncRate * 1.5f, -kSyncRate * 2.0f, 0.0f));
}

TEST(SyncReplicasTest, ToClearTheContainerEndsTheWaits) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const std::string target = cluster.target("worker", 0);
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2}, /*num_tokens=*/0);
  chief.hook->Begin(chief.graph);
  Node* init = ops::GlobalVariablesInitializer(chief.graph);
  Coordinator coordinator;
  Session session(chief.graph, target);
  session.Run(init);
  chief.hook->AfterCreateSession(session, coordinator);
  const auto step =
      testing::WaitingRun::Start(session, {{{chief.x, Tensor::Scalar(1.0f)}}, {}, {chief.train}, kSyncPatience});
  // When the gradient is there, the step waits for a token, or is about to.
  while (session.Run(chief.count).scalar<int32_t>() < 1) {
  }
  Session::Reset(target);
  EXPECT_THAT(MessageOf<AbortedError>([&] { step->Wait(); }), HasSubstr("was cleared"));
}

TEST(BoundedStalenessTest, NoWorkerRunsMoreThanTheLimitAhead) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.staleness = 2}, -1);
  SyncWorker worker(&cluster, 1, {.staleness = 2}, -1);
  chief.Open();
  worker.Open();
  chief.Step(1);
  std::future<void> second = chief.StepLater(1);
  while (worker.global_step() < 2) {
  }
  EXPECT_EQ(worker.value_of_w(), -kSyncRate * 2.0f) << "a gradient is applied before its worker waits";
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  worker.Step(3);
  second.get();
  EXPECT_EQ(worker.value_of_w(), -kSyncRate * 5.0f);
  EXPECT_EQ(worker.global_step(), 3) << "the global step counts the steps of all workers";
  std::future<void> third = chief.StepLater(1);
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  worker.session->Close();  // the slowest worker that is alive is now the chief itself
  third.get();
  chief.Step(1);
}

TEST(BoundedStalenessTest, WithoutALimitNobodyWaits) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.staleness = kUnlimitedStaleness}, -1);
  SyncWorker worker(&cluster, 1, {.staleness = kUnlimitedStaleness}, -1);
  chief.Open();
  worker.Open();
  for (int i = 0; i < 10; ++i) chief.Step(1);
  EXPECT_EQ(worker.value_of_w(), -kSyncRate * 10.0f);
}

TEST(BoundedStalenessTest, TheStalenessOfEachGradientIsRecorded) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.staleness = 5}, -1);
  SyncWorker worker(&cluster, 1, {.staleness = 5}, -1);
  chief.Open();
  worker.Open();
  chief.Step(1);
  chief.Step(1);
  worker.Step(1);  // read its variables before two updates of the chief
  worker.Step(1);
  const auto taken = [&] { return chief.session->Run({}, {chief.staleness})[0].ToVector<int64_t>(); };
  EXPECT_THAT(taken(), ElementsAre(0, 0, 2, 0));
  EXPECT_THAT(taken(), ::testing::IsEmpty());
}

TEST(BoundedStalenessTest, WrongUsesAreNamed) {
  GradientDescentOptimizer sgd(kSyncRate);
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { SyncReplicasOptimizer(sgd, {.replicas_to_aggregate = 2, .staleness = 3}); }),
              HasSubstr("got staleness 3, replicas_to_aggregate 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { SyncReplicasOptimizer(sgd, {.staleness = -2}); }),
              HasSubstr("got staleness -2"));
  SyncWorker model(nullptr, 0, {.staleness = 1}, -1);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { model.sync->chief_op(); }), HasSubstr("expected staleness 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.sync->MakeSessionRunHook(true, 4); }),
              HasSubstr("there are no tokens; got 4"));
}

TEST(SyncReplicasTest, WrongUsesAreNamed) {
  SyncWorker model(nullptr, 0, {.replicas_to_aggregate = 1});
  GradientDescentOptimizer sgd(kSyncRate);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { SyncReplicasOptimizer(sgd, {.replicas_to_aggregate = 0}); }),
              HasSubstr("got 0 and 0"));
  SyncReplicasOptimizer fresh(sgd, {.replicas_to_aggregate = 5, .total_num_replicas = 2});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { fresh.MakeSessionRunHook(true); }), HasSubstr("ApplyGradients"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { fresh.Minimize(model.w.value() * 2.0f, ops::Variable()); }),
              HasSubstr("Global step is required to check staleness"));
  Graph other;
  const ops::Variable step = ops::GetOrCreateGlobalStep(other);
  const ops::Variable v(other, Tensor::Scalar(1.0f), {.name = "v"});
  fresh.Minimize(v.value() * 2.0f, step);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { fresh.Minimize(v.value() * 2.0f, step); }),
              HasSubstr("called before"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { fresh.MakeSessionRunHook(true, 2); }),
              HasSubstr("Too few tokens to finish the first step: 2 (given) vs 3 (needed)"));
}

TEST(SyncReplicasTest, LogsItsNumbers) {
  GradientDescentOptimizer sgd(kSyncRate);
  ::testing::internal::CaptureStderr();
  const SyncReplicasOptimizer sync(sgd, {.replicas_to_aggregate = 2, .total_num_replicas = 3});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("SyncReplicasV2: replicas_to_aggregate=2; total_num_replicas=3"));
}

TEST(SyncReplicasTest, TheTokenOfAStepThatFailsReturns) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
  SyncWorker worker(&cluster, 1, {.replicas_to_aggregate = 2});
  Node* fails = nullptr;
  {
    // Fails on the worker, when the part of the parameter server, with the token, has ended.
    const DeviceScope scope(worker.graph, "/job:worker/task:1");
    const ControlDependencies after(worker.graph, {worker.train});
    fails = ops::Assert(ops::Less(worker.x, 0.0f), {worker.x});
  }
  chief.Open();
  worker.Open();
  std::future<void> first = chief.StepLater(1);
  EXPECT_THROW(worker.session->Run({{worker.x, Tensor::Scalar(3.0f)}}, {}, {fails}, kSyncPatience),
               InvalidArgumentError);
  first.get();
  EXPECT_EQ(chief.global_step(), 1);
  EXPECT_EQ(chief.num_tokens(), 1);  // of two tokens the chief holds one
  // With the lost token this step would wait for ever.
  worker.Step(5);
  std::future<void> second = chief.StepLater(1);
  worker.Step(3);
  second.get();
  EXPECT_EQ(chief.global_step(), 2);
}

TEST(SyncReplicasTest, WorkersWithOtherNumbersAreRefused) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  SyncWorker chief(&cluster, 0, {.replicas_to_aggregate = 2});
  chief.Open();
  SyncWorker other_number(&cluster, 1, {.replicas_to_aggregate = 3});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { other_number.Open(); }),
              AllOf(HasSubstr("replicas_to_aggregate is 3 in "), HasSubstr("2 in the chief"),
                    HasSubstr(cluster.target("worker", 0)), HasSubstr(cluster.target("worker", 1))));
  SyncWorker other_total(&cluster, 1, {.replicas_to_aggregate = 2, .total_num_replicas = 5});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { other_total.Open(); }),
              AllOf(HasSubstr("total_num_replicas is 5"), HasSubstr("and 2 in")));
  SyncWorker asynchronous(&cluster, 1, {.staleness = 4}, /*num_tokens=*/-1);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { asynchronous.Open(); }), HasSubstr("SyncReplicasOptimizer's"));
  SyncWorker same(&cluster, 1, {.replicas_to_aggregate = 2});
  same.Open();
  // Without a chief that is there, another one may come, so the worker waits. A chief that would go on is refused.
  chief.session->Close();
  // The parameter server hears of the end of the chief's session in its own time. Until then the worker is refused.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string why;
  while (why.empty() && std::chrono::steady_clock::now() < deadline) {
    SyncWorker another(&cluster, 1, {.replicas_to_aggregate = 3});
    another.max_wait = std::chrono::milliseconds(300);
    try {
      another.Open();
      FAIL() << "a session was made";
    } catch (const DeadlineExceededError& e) {
      why = e.what();
    } catch (const InvalidArgumentError&) {
    }
  }
  EXPECT_THAT(why, HasSubstr("another training"));
}

}  // namespace
}  // namespace cohort::train
