// A cluster of processes runs in its own network, whose only link is made slow by `tc tbf`. Heartbeats wait in the same
// queue as all other bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/process_cluster.h"
#include "tests/cluster/host_network.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SlowNetworkTest, BulkDoesNotMakeALivePeerLookDead) {
  UseTestToken();
  if (const std::string why = WhyNoNetworks(); !why.empty()) GTEST_SKIP() << why;
  std::optional<PrivateNetwork> network;
  try {
    network.emplace().Do("tc qdisc add dev lo root tbf rate 12mbit burst 128kb latency 400ms");
  } catch (const Error& e) {
    GTEST_SKIP() << "this user may not make a network with a slow link: " << e.what();
  }
  network->Enter();
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
