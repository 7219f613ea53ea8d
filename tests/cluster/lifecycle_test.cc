// Servers and sessions that come and go in one process: nothing of them stays.
#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using testing::LocalCluster;

constexpr int kTimes = 200;
// gRPC starts threads and event descriptors of its own when it is busy and keeps some for a while: not one every few
// rounds, as a leak would.
constexpr int kWarmUp = 5;
constexpr int kGrpcsOwn = 20;

int CountEntries(const char* folder) {
  int count = 0;
  DIR* open = opendir(folder);
  while (const dirent* entry = readdir(open)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(open);
  return count;
}

struct Held {
  int threads = CountEntries("/proc/self/task");
  int descriptors = CountEntries("/proc/self/fd");
};

void ExpectNoMoreThan(const Held& before) {
  const Held after;
  EXPECT_LE(after.threads, before.threads + kGrpcsOwn) << "threads stay";
  EXPECT_LE(after.descriptors, before.descriptors + kGrpcsOwn) << "descriptors stay";
}

// Whether somebody can listen at "127.0.0.1:port", as a new server would.
bool IsFree(const std::string& where) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // a closed connection's last packets do not count
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ParseAddress(where).port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && listen(fd, 1) == 0;
  close(fd);
  return free;
}

std::vector<std::string> Addresses(const ClusterSpec& spec) {
  std::vector<std::string> addresses;
  for (const auto& [job, tasks] : spec.as_map()) {
    for (const auto& [index, address] : tasks) addresses.push_back(address);
  }
  return addresses;
}

// Two ps and a worker; a model on both ps, trained for two steps by sessions of the worker.
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
  Held before;
  for (int i = 0; i < kTimes + kWarmUp; ++i) {
    if (i == kWarmUp) before = Held();
    std::vector<std::string> addresses;
    {
      LocalCluster cluster({{"ps", 2}, {"worker", 1}});
      addresses = Addresses(cluster.spec());
      UseACluster(cluster, 2);
      for (const std::string& address : addresses) ASSERT_FALSE(IsFree(address)) << address;
    }
    for (const std::string& address : addresses) ASSERT_TRUE(IsFree(address)) << address << " in round " << i;
    if (::testing::Test::HasFailure()) return;
  }
  ExpectNoMoreThan(before);
}

TEST(LifecycleTest, SessionsLeaveNothingOnALivingCluster) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  for (int i = 0; i < kWarmUp; ++i) UseACluster(cluster, 2);
  const Held before;
  for (int i = 0; i < kTimes; ++i) UseACluster(cluster, 2);
  ExpectNoMoreThan(before);
}

// The very same port, over and over: it is free as soon as its server has stopped.
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

// Stopped in the middle of everything: steps under way, sessions being made.
TEST(LifecycleTest, AServerMayStopWhileItIsUsed) {
  setenv("COHORT_TOKEN", "local-cluster-test", 1);  // for a session that no longer finds its server in this process
  std::mt19937 random(3);
  Held before;
  for (int i = 0; i < kTimes / 4; ++i) {
    if (i == kWarmUp) before = Held();
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
          // The end that this test is about; which error depends on the moment.
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));  // any moment will do
    cluster.Stop(i % 3 == 0 ? "worker" : "ps", i % 3 == 2 ? 1 : 0);
    for (std::thread& user : users) user.join();
  }
  ExpectNoMoreThan(before);
}

}  // namespace
}  // namespace cohort
