// Tests that make and end many servers and sessions in one process. They check that no thread, descriptor or port is
// left.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/held_resources.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using testing::HeldResources;
using testing::LocalCluster;

// A line in the log for each of some thousand servers would hide a failure.
const bool kQuiet = setenv("COHORT_LOG_LEVEL", "warning", 0) == 0;

constexpr int kTimes = 200;
// In the first rounds gRPC makes the resources that it keeps for the process.
constexpr int kWarmUp = 5;

// Returns the resources that this process holds without servers: those at its start, and gRPC's event descriptors.
HeldResources HeldWithoutServers() {
  HeldResources held = HeldResources::AtStart();
  const HeldResources now;
  const auto events = now.descriptors.find("anon_inode");
  if (events != now.descriptors.end()) held.descriptors["anon_inode"] = events->second;
  return held;
}

// Returns the local ports on which this process listens. Other processes may take a port as soon as it is free.
std::set<int> OwnPorts() {
  std::set<int> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_in address{};
    size = sizeof(address);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) ports.insert(ntohs(address.sin_port));
  }
  return ports;
}

std::set<int> Ports(const ClusterSpec& spec) {
  std::set<int> ports;
  for (const auto& [job, tasks] : spec.as_map()) {
    for (const auto& [index, address] : tasks) ports.insert(ParseAddress(address).port);
  }
  return ports;
}

// Uses two ps and a worker. A model is on both ps, and sessions of the worker train it for two steps.
void UseACluster(LocalCluster& cluster, int sessions) {
  Graph g;
  std::vector<Node*> updates;
  std::vector<ops::Variable> variables;
  for (int p = 0; p < 2; ++p) {
    const DeviceScope scope(g, StrCat("/job:ps/task:", p));
    variables.emplace_back(g, ops::Const(g, 1.0f), ops::VariableOptions{.name = StrCat("v", p)});
  }
  {
    const DeviceScope scope(g, "/job:worker/task:0");
    const Output sum = variables[0].value() + variables[1].value();
    for (const ops::Variable& v : variables) updates.push_back(v.AssignAdd(sum));
  }
  Node* train = ops::Group(g, updates);
  {
    Session chief(g, cluster.target("worker", 0));
    chief.Run(ops::GlobalVariablesInitializer(g));
  }
  for (int s = 0; s < sessions; ++s) {
    Session session(g, cluster.target("worker", 0));
    session.Run(train);
  }
  Session last(g, cluster.target("worker", 0));
  float expected = 1;
  for (int s = 0; s < sessions; ++s) expected += 2 * expected;
  EXPECT_EQ(last.Run(variables[0].value()).scalar<float>(), expected);
}

TEST(LifecycleTest, ServersAndSessionsLeaveNothingBehind) {
  HeldResources before = HeldResources::AtStart();
  for (int i = 0; i < kTimes + kWarmUp; ++i) {
    if (i == kWarmUp) before = HeldWithoutServers();
    {
      LocalCluster cluster({{"ps", 2}, {"worker", 1}});
      UseACluster(cluster, 2);
      ASSERT_EQ(OwnPorts(), Ports(cluster.spec()));
    }
    ASSERT_EQ(OwnPorts(), std::set<int>()) << "in round " << i;
    if (::testing::Test::HasFailure()) return;
  }
  testing::ExpectNothingAdded(before);
}

TEST(LifecycleTest, SessionsLeaveNothingOnALivingCluster) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  for (int i = 0; i < kWarmUp; ++i) UseACluster(cluster, 2);
  const HeldResources before;
  for (int i = 0; i < kTimes; ++i) UseACluster(cluster, 2);
  testing::ExpectNothingAdded(before);
}

// The same port is used again and again. It is free as soon as its server has stopped.
TEST(LifecycleTest, APortIsFreeWhenItsServerHasStopped) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph g;
  const DeviceScope scope(g, "/job:ps/task:0");
  const ops::Variable v(g, ops::Const(g, 1.0f), {.name = "v"});
  for (int i = 0; i < kTimes; ++i) {
    cluster.Restart("ps", 0);
    Session session(g, cluster.target("worker", 0));
    session.Run(v.initializer());
    EXPECT_EQ(session.Run(v.value()).scalar<float>(), 1.0f);
  }
}

// The server is stopped while steps are under way and sessions are being made.
TEST(LifecycleTest, AServerMayStopWhileItIsUsed) {
  setenv("COHORT_TOKEN", "local-cluster-test",
         1);  // for a session that does not find its server in this process any more
  std::mt19937 random(3);
  HeldResources before = HeldResources::AtStart();
  for (int i = 0; i < kTimes / 4; ++i) {
    if (i == kWarmUp) before = HeldWithoutServers();
    LocalCluster cluster({{"ps", 2}, {"worker", 1}});
    Graph g;
    Output x;
    {
      const DeviceScope scope(g, "/job:ps/task:0");
      x = ops::Const(g, 1.0f) + ops::Const(g, 2.0f);
    }
    {
      const DeviceScope scope(g, "/job:ps/task:1");
      x = x + 1.0f;
    }
    std::vector<std::thread> users;
    users.reserve(2);
    std::atomic<int> good{0};
    const std::string target = cluster.target("worker", 0);
    for (int u = 0; u < 2; ++u) {
      users.emplace_back([&] {
        try {
          for (;;) {
            Session session(g, target, {.connect_timeout_secs = 0.2});
            for (int k = 0; k < 5; ++k) {
              if (session.Run(x).scalar<float>() != 4.0f) ADD_FAILURE() << "a wrong value";
              ++good;
            }
          }
        } catch (const Error&) {
          // This is the expected end. The class of the error depends on the moment.
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));  // any moment is good
    cluster.Stop(i % 3 == 0 ? "worker" : "ps", i % 3 == 2 ? 1 : 0);
    for (std::thread& user : users) user.join();
  }
  testing::ExpectNothingAdded(before);
}

}  // namespace
}  // namespace cohort
