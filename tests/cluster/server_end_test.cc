// Tests of the end of servers, and of what happens then to sessions, to the chief, and to a second process with the
// same name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cohort.h"
#include "cohort/core/testing/throws.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::LocalCluster;
using ::testing::Not;
using testing::VariableOn;

// The chief's process may end right after it has said that training is done. A ps ends as soon as it has received this.
// By then all tasks have answered, and no task logs a warning.
TEST(ServerEndTest, WhoHearsThatTrainingIsDoneAnswersBeforeItEnds) {
  for (int round = 0; round < 20; ++round) {
    ServerOptions options = LocalCluster::FastOptions();
    options.orphan_timeout = std::chrono::milliseconds(1);
    LocalCluster cluster({{"ps", 3}, {"worker", 1}}, options);
    std::string messages[3];
    std::vector<std::thread> servers;
    for (int p = 0; p < 3; ++p) {
      servers.emplace_back([&, p] {
        messages[p] = ErrorOf([&] { cluster.server("ps", p).Join(); });
        cluster.Stop("ps", p);
      });
    }
    ::testing::internal::CaptureStderr();
    cluster.server("worker", 0).AnnounceDone();
    cluster.Stop("worker", 0);
    for (std::thread& server : servers) server.join();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, Not(HasSubstr(": W ")));
    EXPECT_THAT(log, Not(HasSubstr(": E ")));
    for (const std::string& message : messages) ASSERT_EQ(message, "no error") << "round " << round;
  }
}

// A task is started twice by mistake, each time with another address. The second one is told so, and the first one goes
// on.
TEST(ServerEndTest, TwoProcessesOfOneTaskAreNamed) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph g;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  Session first(g, cluster.target("worker", 0));
  first.Run(v.initializer());
  const ClusterSpec other({{"ps", {cluster.spec().task_address("ps", 0)}}, {"worker", {"127.0.0.1:0"}}});
  auto twin = std::make_unique<Server>(other, "worker", 0, LocalCluster::FastOptions());
  Session second(g, twin->Target());
  const std::string message = ErrorOf([&] { second.Run(v.value()); });
  EXPECT_THAT(message, HasSubstr("AlreadyExists"));
  EXPECT_THAT(message, HasSubstr("two processes are /job:worker/replica:0/task:0"));
  EXPECT_THAT(message, HasSubstr(cluster.spec().task_address("worker", 0)));
  EXPECT_THAT(message, HasSubstr(twin->Target().substr(7)));
  EXPECT_EQ(first.Run(v.value()).scalar<float>(), 4.0f);  // also a signature that it has not run before
  // The first one is not disturbed, either, when such a second one ends.
  std::atomic<bool> stop{false};
  std::string steps = "no step";
  std::thread user([&] {
    steps = ErrorOf([&] {
      while (!stop) first.Run(v.value());
    });
  });
  for (int i = 0; i < 5; ++i) {
    Server another(other, "worker", 0, LocalCluster::FastOptions());
    Session::Reset(another.Target(), {"nothing"});  // this connects to all tasks
  }
  stop = true;
  user.join();
  EXPECT_EQ(steps, "no error");
  // If the first one ends, the second one is the task.
  std::thread former([&] { cluster.Stop("worker", 0); });
  Session third(g, twin->Target());
  EXPECT_EQ(third.Run(v.value()).scalar<float>(), 4.0f);
  former.join();
}

// A worker that has ended before, or ends at that moment, was not waiting for the message.
TEST(ServerEndTest, WhoHasEndedNeedNotHearThatTrainingIsDone) {
  for (int round = 0; round < 3; ++round) {
    LocalCluster cluster({{"worker", 3}});
    {
      Graph g;
      Output x = ops::Const(g, 1.0f);
      for (int w = 0; w < 3; ++w) {
        const DeviceScope scope(g, "/job:worker/task:" + std::to_string(w));
        x = x + 1.0f;
      }
      Session session(g, cluster.target("worker", 0));
      EXPECT_EQ(session.Run(x).scalar<float>(), 4.0f);
    }
    cluster.Stop("worker", 2);
    ::testing::internal::CaptureStderr();
    std::thread ends([&] { cluster.Stop("worker", 1); });
    cluster.server("worker", 0).AnnounceDone();
    ends.join();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("may not know")));
  }
}

// Sessions of this process end with its server, also those without any part of a step here.
TEST(ServerEndTest, AStepAmongOthersEndsWhenTheServerOfItsSessionStops) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph g;
  Output x;
  Node* update;
  const ops::Variable v = VariableOn(g, "/job:ps/task:0", ops::Const(g, 4.0f), "v");
  {
    const DeviceScope scope(g, "/job:ps/task:0");
    x = ops::Placeholder(g, DType::kFloat32, Shape{1000, 1000});
    Output y = x;
    for (int i = 0; i < 200; ++i) y = ops::MatMul(y, x);  // this takes seconds
    update = v.AssignAdd(ops::Sum(y) + 1.0f);
  }
  Session session(g, cluster.target("worker", 0));
  session.Run(v.initializer());
  std::string message;
  std::thread user([&] {
    message = ErrorOf([&] { session.Run({{x, Tensor::Zeros(DType::kFloat32, Shape{1000, 1000})}}, {}, {update}); });
  });
  const auto ps = ServerDirectory::Global().Find(cluster.target("ps", 0));
  while (ps->local_task()->DescribeSteps().empty()) std::this_thread::yield();
  cluster.Stop("worker", 0);
  user.join();
  EXPECT_THAT(message, HasSubstr("was stopped"));
  // On the ps the step ends between two kernels, and before its updates.
  while (!ps->local_task()->DescribeSteps().empty()) std::this_thread::yield();
  Session other(g, cluster.target("ps", 0));
  EXPECT_EQ(other.Run(v.value()).scalar<float>(), 4.0f);
}

}  // namespace
}  // namespace cohort
