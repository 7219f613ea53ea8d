// A cluster of processes runs in its own network, whose only link is made slow by `tc tbf`. Heartbeats wait in the same
// queue as all other bytes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void WriteTo(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size())) << path;
  close(fd);
}

// Moves this thread, and so every process that it starts, into a network with only loopback. Returns false if the user
// may not do this.
bool EnterOwnNetwork() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (user == 0) return unshare(CLONE_NEWNET) == 0;
  if (unshare(CLONE_NEWNET | CLONE_NEWUSER) != 0) return false;
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", StrCat("0 ", user, " 1"));
  WriteTo("/proc/self/gid_map", StrCat("0 ", group, " 1"));
  return true;
}

int Do(const std::string& command) {
  LaunchedProgram program({"/bin/sh", "-c", "PATH=$PATH:/sbin:/usr/sbin; " + command});
  const int code = program.Wait();
  if (code != 0) std::fprintf(stderr, "%s: %s\n", command.c_str(), program.err().c_str());
  return code;
}

TEST(SlowNetworkTest, BulkDoesNotMakeALivePeerLookDead) {
  UseTestToken();
  if (!EnterOwnNetwork() || Do("ip link set lo up") != 0 ||
      Do("tc qdisc add dev lo root tbf rate 12mbit burst 128kb latency 400ms") != 0) {
    GTEST_SKIP() << "this user may not make a network with a slow link";
  }
  // A step sends 3 MB and fetches 3 MB. That takes 4 s on this link, which is more than twice the silence limit.
  constexpr int kSteps = 2;
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--share_memory=0", "--silence_ms=1500", "--heartbeat_ms=200", "--variables=2", "--size=375000",
                    StrCat("--steps=", kSteps)});
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 0) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "acked"), kSteps);
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 0) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 0).err() + cluster.task("ps", 0).err(), Not(HasSubstr("no byte for")));
}

}  // namespace
}  // namespace cohort::testing
