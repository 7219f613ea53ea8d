// A task that waits for another one, which is not up, ends soon if it is asked to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/monitored_session.h"
#include "cohort/train/supervisor.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using cohort::testing::LocalCluster;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A variable on the parameter server, and a sum on the other worker.
struct SpreadModel {
  explicit SpreadModel(const ClusterSpec& cluster) {
    RegisterAll();
    const DeviceScope scope(graph, ReplicaDeviceSetter({.worker_device = "/job:worker/task:0", .cluster = cluster}));
    const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
    const DeviceScope there(graph, "/job:worker/task:1");
    on_other_worker = step.value() + ops::Const(graph, int64_t{1});
  }
  Graph graph;
  Output on_other_worker;
};

// Calls `stop` again and again while `wait` runs, and expects that `wait` throws soon. Returns the error.
std::string ErrorWhenStopped(const std::function<void()>& stop, const std::function<void()>& wait) {
  std::atomic<bool> over = false;
  std::thread stopper([&] {
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      stop();
    }
  });
  const auto start = std::chrono::steady_clock::now();
  const std::string error = ErrorOf(wait);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));  // the limit is two hours
  over = true;
  stopper.join();
  return error;
}

TEST(StopWhileWaitingTest, ASupervisorsWaitForATaskEnds) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Stop("ps", 0);
  for (const bool is_chief : {true, false}) {
    SpreadModel model(cluster.spec());
    Supervisor supervisor(model.graph, {.is_chief = is_chief, .server = &cluster.server("worker", 0)});
    EXPECT_THAT(ErrorWhenStopped([&] { supervisor.RequestStop(); },
                                 [&] { supervisor.managed_session(cluster.target("worker", 0)).Close(); }),
                AllOf(HasSubstr("Cancelled"), HasSubstr("asked to stop"), HasSubstr("/job:ps/replica:0/task:0")));
  }
}

TEST(StopWhileWaitingTest, ASupervisorsStepThatNeedsATaskEnds) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Stop("worker", 1);
  SpreadModel model(cluster.spec());
  Supervisor supervisor(model.graph, {.server = &cluster.server("worker", 0)});
  EXPECT_THAT(ErrorWhenStopped([&] { supervisor.RequestStop(); },
                               [&] {
                                 ManagedSession session = supervisor.managed_session(cluster.target("worker", 0));
                                 session->Run(model.on_other_worker);
                               }),
              AllOf(HasSubstr("Cancelled"), HasSubstr("/job:worker/replica:0/task:1")));
}

class SignalsBeforeTheStep final : public SessionRunHook {
 public:
  SessionRunArgs BeforeRun(SessionRunContext&) override {
    raise(SIGTERM);
    return {};
  }
};

// A signal is of a whole process, so the case runs in one of its own.
TEST(StopWhileWaitingDeathTest, AMonitoredStepThatNeedsATaskEndsAfterSigterm) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        LocalCluster cluster({{"ps", 1}, {"worker", 2}});
        cluster.Stop("worker", 1);
        SpreadModel model(cluster.spec());
        const std::string error = ErrorOf([&] {
          MonitoredSession session =
              MonitoredTrainingSession(model.graph, {.master = cluster.target("worker", 0),
                                                     .hooks = {std::make_shared<SignalsBeforeTheStep>()},
                                                     .server = &cluster.server("worker", 0)});
          session.Run(model.on_other_worker);
        });
        std::fputs(error.c_str(), stderr);
        _exit(cluster.server("ps", 0).training_done() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "Cancelled: .*got SIGTERM.*waits no longer for /job:worker/replica:0/task:1");
}

}  // namespace
}  // namespace cohort::train
