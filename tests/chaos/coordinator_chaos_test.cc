// A ClusterCoordinator whose workers are processes that are killed, frozen and started again. Each closure adds 1 to a
// variable, and the sum says how often closures took effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cohort/cluster/port_reservation.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/coordinator/cluster_coordinator.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "tests/chaos/process_cluster.h"
#include "tests/chaos/tcp_proxy.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kClosures = 1000;
constexpr int kBefore = 100;  // closures that have ended when a fault comes

class CoordinatorChaosTest : public ::testing::Test {
 protected:
  // Starts the cluster. Peers reach the parameter server through a proxy, whose link can be cut.
  void SetUp() override {
    UseTestToken();
    cluster_ = std::make_unique<ProcessCluster>(std::map<std::string, int>{{"chief", 1}, {"ps", 1}, {"worker", 2}});
    const std::string own = cluster_->address("ps", 0);
    proxy_ = std::make_unique<TcpProxy>(ParseAddress(own).port);
    cluster_->Advertise("ps", 0, proxy_->address());
    const std::string of_worker = cluster_->address("worker", 1);
    worker_proxy_ = std::make_unique<TcpProxy>(ParseAddress(of_worker).port);
    cluster_->Advertise("worker", 1, worker_proxy_->address());
    server_arguments_ = ServeOn(own);
    cluster_->Start("ps", 0, server_arguments_);
    cluster_->Start("worker", 0, serve_);
    worker_arguments_ = ServeOn(of_worker);
    cluster_->Start("worker", 1, worker_arguments_);
    ServerOptions server;
    server.heartbeat_interval = std::chrono::milliseconds(300);
    server.silence_limit = std::chrono::milliseconds(1500);
    server.config.intra_op_parallelism_threads = 1;
    strategy_ = distribute::ParameterServerStrategy(SimpleClusterResolver(cluster_->spec(), "chief", 0), nullptr,
                                                    {.server = server});
    {
      const auto scope = strategy_->Scope(graph_);
      count_ = ops::Variable(graph_, Tensor::Scalar(0.0f), {.name = "count"});
    }
    strategy_->OpenSession(graph_)->Run(ops::GlobalVariablesInitializer(graph_));
    coordinator_ = std::make_unique<distribute::ClusterCoordinator>(strategy_, graph_);
    // A product keeps the worker busy for a while, so that closures are in flight when it is killed.
    add_ = coordinator_->MakeFunction([&](distribute::ClosureContext& worker) {
      const Output matrix = ops::Fill(ops::Const(graph_, std::vector<int32_t>{256, 256}), ops::Const(graph_, 0.0f));
      const Output one = ops::Sum(ops::MatMul(matrix, matrix + 1.0f)) + 1.0f;
      return distribute::ClosureNodes{.fetches = {one, ops::Identity(ops::Const(graph_, worker.worker()))},
                                      .targets = {count_.AssignAdd(one)}};
    });
  }
  Arguments ServeOn(const std::string& address) const {
    Arguments arguments = serve_;
    arguments.push_back("--bind=" + address);
    return arguments;
  }
  std::vector<distribute::RemoteValue> Schedule(int closures) {
    std::vector<distribute::RemoteValue> values;
    for (int i = 0; i < closures; ++i) values.push_back(coordinator_->Schedule(add_));
    return values;
  }
  // Reads the sum by a session of its own, because a lost connection ends the sessions that use it.
  float Count() { return strategy_->OpenSession(graph_)->Run(count_.value()).scalar<float>(); }

  const Arguments serve_ = {"--serve=1", "--silence_ms=1500", "--orphan_ms=600000"};
  std::unique_ptr<ProcessCluster> cluster_;
  std::unique_ptr<TcpProxy> proxy_;
  std::unique_ptr<TcpProxy> worker_proxy_;  // in front of worker 1
  Arguments server_arguments_, worker_arguments_;
  distribute::StrategyPtr strategy_;
  Graph graph_;
  ops::Variable count_;
  std::unique_ptr<distribute::ClusterCoordinator> coordinator_;
  distribute::ClosureFunctionPtr add_;
};

TEST_F(CoordinatorChaosTest, ClosuresOfAKilledWorkerTakeEffectOnce) {
  const auto values = Schedule(kClosures);
  values[kBefore].Fetch();
  cluster_->Kill("worker", 1);
  coordinator_->Join();
  EXPECT_EQ(Count(), kClosures) << cluster_->Describe();
  for (const auto& value : values) EXPECT_EQ(value.Fetch()[0].scalar<float>(), 1.0f);
  cluster_->Start("worker", 1, worker_arguments_);
  Schedule(kClosures);
  coordinator_->Join();
  EXPECT_EQ(Count(), 2 * kClosures) << cluster_->Describe();
}

// The frozen worker's closures run on the other one. When it goes on, what it sends changes nothing.
TEST_F(CoordinatorChaosTest, ClosuresOfAFrozenWorkerTakeEffectOnce) {
  const auto values = Schedule(kClosures);
  values[kBefore].Fetch();
  cluster_->Freeze("worker", 1);
  coordinator_->Join();
  EXPECT_EQ(Count(), kClosures) << cluster_->Describe();
  cluster_->Thaw("worker", 1);
  Schedule(kClosures);
  coordinator_->Join();
  EXPECT_EQ(Count(), 2 * kClosures) << cluster_->Describe();
}

// Another process takes the frozen worker's place, and has worked when the frozen one goes on.
TEST_F(CoordinatorChaosTest, AWorkerThatIsFrozenPastItsReplacementChangesNothing) {
  const auto values = Schedule(kClosures);
  values[kBefore].Fetch();
  cluster_->Freeze("worker", 1);
  coordinator_->Join();
  EXPECT_EQ(Count(), kClosures) << cluster_->Describe();
  const PortReservation port;
  worker_proxy_->Retarget(port.port());
  Arguments command = {"/usr/bin/env", "TF_CONFIG=" + cluster_->TFConfig("worker", 1)};
  for (const Arguments& part : {ProcessCluster::ChaosTask(), ServeOn(port.Address())}) {
    command.insert(command.end(), part.begin(), part.end());
  }
  LaunchedProgram replacement(command);
  // Closures are queued until the replacement has taken one; the test's time limit bounds this.
  int closures = kClosures;
  for (bool works = false; !works;) {
    std::vector<distribute::RemoteValue> more;
    for (int i = 0; i < 20; ++i) more.push_back(coordinator_->Schedule(add_));
    coordinator_->Join();
    closures += 20;
    for (const auto& value : more) works = works || value.Fetch()[1].scalar<int32_t>() == 1;
  }
  Schedule(kBefore);
  cluster_->Thaw("worker", 1);
  Schedule(kBefore);
  coordinator_->Join();
  EXPECT_EQ(Count(), closures + 2 * kBefore) << cluster_->Describe();
  replacement.Signal(SIGKILL);
  coordinator_->Join();
  EXPECT_EQ(Count(), closures + 2 * kBefore) << cluster_->Describe();
}

// Every connection of the parameter server is lost for longer than the silence limit. It keeps its variables.
TEST_F(CoordinatorChaosTest, AShortLossOfTheParameterServersConnectionsOnlyRepeatsClosures) {
  auto values = Schedule(kClosures / 2);
  values[kBefore].Fetch();
  proxy_->Cut();
  for (const auto& value : Schedule(kClosures / 2)) values.push_back(value);
  // A closure that needs the link ends only after it is healed, so one that was queued last has not ended before.
  EXPECT_THROW(values.back().Fetch(std::chrono::milliseconds(3000)), DeadlineExceededError);
  proxy_->Heal();
  coordinator_->Join();
  EXPECT_EQ(Count(), kClosures) << cluster_->Describe();
  EXPECT_GT(coordinator_->repeated_closures(), 0);
}

// The error names the task, and not the first variable that has no value. It is thrown once. The program may give the
// variables values, and go on.
TEST_F(CoordinatorChaosTest, AParameterServerThatWasStartedAgainIsNamedOnce) {
  for (int restart = 1; restart <= 2; ++restart) {
    const auto values = Schedule(kClosures);
    values[kBefore].Fetch();
    cluster_->Kill("ps", 0);
    cluster_->Start("ps", 0, server_arguments_);
    EXPECT_THAT(MessageOf<AbortedError>([&] { coordinator_->Join(); }),
                AllOf(HasSubstr("[coordinator] expected every parameter server to be the process that has got the "),
                      HasSubstr("/job:ps/replica:0/task:0 was started again"), HasSubstr("restore")))
        << cluster_->Describe();
    strategy_->OpenSession(graph_)->Run(ops::GlobalVariablesInitializer(graph_));
    Schedule(kClosures);
    coordinator_->Join();
    EXPECT_EQ(Count(), kClosures) << cluster_->Describe();
  }
}

// The chief's own session, with which Fit reads metrics and weights, is lost too.
TEST_F(CoordinatorChaosTest, AKerasModelTrainsThroughAShortLossOfTheParameterServer) {
  keras::Sequential model({keras::Dense(1)}, {.strategy = strategy_});
  model.Compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = Tensor::FromValues(std::vector<float>{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(std::vector<float>{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  std::jthread healer;
  const keras::CallbackPtr cut = keras::LambdaCallback({.on_epoch_begin = [&](int epoch) {
    if (epoch != 1) return;
    proxy_->Cut();
    healer = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than the silence limit
      proxy_->Heal();
    });
  }});
  const keras::History history = model.Fit(data::Dataset::FromTensorSlices({x, y}).Repeat().Batch(3),
                                           {.epochs = 3, .verbose = 0, .callbacks = {cut}, .steps_per_epoch = 20});
  ASSERT_EQ(history["mae"].size(), 3u);
  EXPECT_LT(history["loss"][2], history["loss"][0]);
  EXPECT_EQ(model.GetWeights().size(), 2u);
}

}  // namespace
}  // namespace cohort::testing
