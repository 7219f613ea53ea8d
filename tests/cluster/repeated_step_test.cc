// A step that its task repeats (RunOptions::repeat_on_task) on a cluster: the parameter server adds the numbers of a
// queue to a variable, and puts each sum into another queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cohort.h"
#include "cohort/core/testing/throws.h"
#include "cohort/runtime/testing/waiting_runs.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::LocalCluster;
using testing::WaitingRun;

constexpr char kPs[] = "/job:ps/task:0";
constexpr RunOptions kPatience{.timeout = std::chrono::seconds(60)};

// The nodes of the step, and those with which the test feeds it.
struct Adder {
  Adder() {
    RegisterAll();
    const DeviceScope scope(graph, kPs);
    sum = std::make_unique<ops::Variable>(testing::VariableOn(graph, kPs, ops::Const(graph, 0.0f), "sum"));
    const ops::FIFOQueue numbers(graph, {DType::kFloat32}, {.shapes = {Shape()}, .name = NodeName("numbers")});
    const ops::FIFOQueue sums(graph, {DType::kFloat32}, {.shapes = {Shape()}, .name = NodeName("sums")});
    number = ops::Placeholder(graph, DType::kFloat32, Shape(), "number");
    put = numbers.Enqueue({number});
    close = numbers.Close();
    Node* added = sum->AssignAdd(numbers.Dequeue()[0]);
    {
      const ControlDependencies after(graph, {added});
      step = sums.Enqueue({sum->Read()});
    }
    taken = sums.Dequeue()[0];
    init = ops::GlobalVariablesInitializer(graph);
  }
  // Gives the step a number, and returns the sum that it has then.
  float Add(Session& session, float value) const {
    session.Run({{number, Tensor::Scalar(value)}}, {}, {put}, kPatience);
    return session.Run({}, {taken}, {}, kPatience)[0].scalar<float>();
  }
  static std::unique_ptr<WaitingRun> Start(Session& session, Node* step) {
    return WaitingRun::Start(session, {{}, {}, {step}, {.repeat_on_task = true}});
  }

  Graph graph;
  std::unique_ptr<ops::Variable> sum;
  Output number, taken;
  Node *put = nullptr, *close = nullptr, *step = nullptr, *init = nullptr;
};

class RepeatedStepTest : public ::testing::TestWithParam<std::string> {
 protected:
  static ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    return options;
  }
  // Returns the numbers of the steps that the parameter server runs now.
  std::vector<int64_t> StepsOfPs() {
    std::vector<int64_t> steps;
    const auto node = ServerDirectory::Global().Find(cluster.target("ps", 0));
    for (const RunningStep& step : node->local_task()->RunningSteps()) steps.push_back(step.step);
    return steps;
  }
  // Waits until the parameter server runs so many steps. A step may run for a moment after the session has its results.
  void AwaitStepsOfPs(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (StepsOfPs().size() != count && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(StepsOfPs().size(), count);
  }

  LocalCluster cluster{{{"ps", 1}, {"worker", 1}}, Options()};
  Adder adder;
};
INSTANTIATE_TEST_SUITE_P(All, RepeatedStepTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

TEST_P(RepeatedStepTest, OneStartLastsUntilARunFails) {
  Session session(adder.graph, cluster.target("worker", 0));
  session.Run(adder.init);
  const auto run = Adder::Start(session, adder.step);
  EXPECT_EQ(adder.Add(session, 1), 1.0f);
  AwaitStepsOfPs(1);
  const std::vector<int64_t> steps = StepsOfPs();
  for (int i = 2; i <= 20; ++i) EXPECT_EQ(adder.Add(session, 1), static_cast<float>(i));
  AwaitStepsOfPs(1);
  EXPECT_EQ(StepsOfPs(), steps) << "the same step goes on";
  EXPECT_FALSE(run->ended());
  session.Run(adder.close);
  const std::string error = MessageOf<OutOfRangeError>([&] { run->Wait(); });
  EXPECT_THAT(error, HasSubstr("'numbers' is closed"));
  EXPECT_THAT(error, HasSubstr("/job:ps/replica:0/task:0"));
  AwaitStepsOfPs(0);
}

TEST_P(RepeatedStepTest, ACancelledStepRunsNoMore) {
  Session session(adder.graph, cluster.target("worker", 0));
  session.Run(adder.init);
  const auto run = Adder::Start(session, adder.step);
  EXPECT_EQ(adder.Add(session, 1), 1.0f);
  session.CancelRuns(Status(Code::kAborted, "the test has seen enough"));
  EXPECT_THAT(MessageOf<AbortedError>([&] { run->Wait(); }), HasSubstr("has seen enough"));
  AwaitStepsOfPs(0);
  session.Run({{adder.number, Tensor::Scalar(1.0f)}}, {}, {adder.put}, kPatience);
  EXPECT_EQ(session.Run(adder.sum->value()).scalar<float>(), 1.0f);
}

TEST_P(RepeatedStepTest, TheEndOfTheClientEndsTheStep) {
  {
    Session session(adder.graph, cluster.target("worker", 0));
    session.Run(adder.init);
    const auto run = Adder::Start(session, adder.step);
    EXPECT_EQ(adder.Add(session, 1), 1.0f);
    cluster.Stop("worker", 0);
    AwaitStepsOfPs(0);
    EXPECT_THROW(run->Wait(), Error);
  }
  cluster.Restart("worker", 0);
  Session session(adder.graph, cluster.target("worker", 0));
  const auto run = Adder::Start(session, adder.step);
  EXPECT_EQ(adder.Add(session, 2), 3.0f);
}

TEST_P(RepeatedStepTest, TheLossOfTheTaskIsTheErrorOfTheRun) {
  Session session(adder.graph, cluster.target("worker", 0));
  session.Run(adder.init);
  const auto run = Adder::Start(session, adder.step);
  EXPECT_EQ(adder.Add(session, 1), 1.0f);
  cluster.Stop("ps", 0);
  EXPECT_THAT(MessageOf<UnavailableError>([&] { run->Wait(); }), HasSubstr("/job:ps/replica:0/task:0"));
}

}  // namespace
}  // namespace cohort
