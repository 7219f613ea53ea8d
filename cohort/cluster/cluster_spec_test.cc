#include "cohort/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ClusterSpec Dense() {
  return ClusterSpec({{"worker", {"localhost:2224", "localhost:2225"}}, {"ps", {"localhost:2222", "[::1]:2223"}}});
}

ClusterSpec Sparse() { return ClusterSpec::FromSparse({{"worker", {{1, "w1:1"}, {3, "w3:1"}}}, {"ps", {{0, "p:1"}}}}); }

TEST(ClusterSpecTest, DenseJobs) {
  const ClusterSpec cluster = Dense();
  EXPECT_THAT(cluster.jobs(), ElementsAre("ps", "worker"));
  EXPECT_EQ(cluster.num_tasks("worker"), 2);
  EXPECT_EQ(cluster.total_tasks(), 4);
  EXPECT_THAT(cluster.task_indices("ps"), ElementsAre(0, 1));
  EXPECT_EQ(cluster.task_address("worker", 1), "localhost:2225");
  EXPECT_THAT(cluster.job_tasks("ps"), ElementsAre("localhost:2222", "[::1]:2223"));
  EXPECT_TRUE(cluster.has_task("ps", 1));
  EXPECT_FALSE(cluster.has_task("ps", 2));
  EXPECT_FALSE(cluster.has_task("chief", 0));
}

TEST(ClusterSpecTest, SparseJobs) {
  const ClusterSpec cluster = Sparse();
  EXPECT_EQ(cluster.num_tasks("worker"), 2);
  EXPECT_THAT(cluster.task_indices("worker"), ElementsAre(1, 3));
  EXPECT_EQ(cluster.task_address("worker", 3), "w3:1");
  EXPECT_THAT(cluster.job_tasks("worker"), ElementsAre(std::nullopt, "w1:1", std::nullopt, "w3:1"));
}

TEST(ClusterSpecTest, PrintsAsTensorFlowDoes) {
  EXPECT_EQ(Dense().ToString(),
            "ClusterSpec({'ps': ['localhost:2222', '[::1]:2223'], 'worker': ['localhost:2224', "
            "'localhost:2225']})");
  EXPECT_EQ(Sparse().ToString(), "ClusterSpec({'ps': ['p:1'], 'worker': {1: 'w1:1', 3: 'w3:1'}})");
  EXPECT_EQ(ClusterSpec().ToString(), "ClusterSpec({})");
  EXPECT_EQ(ClusterSpec({{"ps", {}}}).ToString(), "ClusterSpec({'ps': {}})");
  std::ostringstream out;
  out << Sparse();
  EXPECT_EQ(out.str(), Sparse().ToString());
}

TEST(ClusterSpecTest, EmptyAndEquality) {
  EXPECT_TRUE(ClusterSpec().empty());
  EXPECT_FALSE(ClusterSpec({{"ps", {}}}).empty());
  EXPECT_EQ(ClusterSpec({{"ps", {}}}).num_tasks("ps"), 0);
  EXPECT_EQ(Dense(), Dense());
  EXPECT_NE(Dense(), Sparse());
  EXPECT_EQ(ClusterSpec{}, ClusterSpec());
  const ClusterSpec braces{{"a", {"h:1", "h:2"}}};
  const std::map<std::string, std::vector<std::string>> map{{"a", {"h:1", "h:2"}}};
  EXPECT_EQ(braces, ClusterSpec(map));
  // A job written sparsely with dense indices is the same job.
  EXPECT_EQ(ClusterSpec::FromSparse({{"a", {{0, "h:1"}, {1, "h:2"}}}}), ClusterSpec({{"a", {"h:1", "h:2"}}}));
}

TEST(ClusterSpecTest, UnknownJobAndTaskNameWhatThereIs) {
  EXPECT_THAT(MessageOf<NotFoundError>([] { Dense().num_tasks("chief"); }),
              HasSubstr("No such job in cluster: 'chief'; the cluster has ps, worker"));
  EXPECT_THAT(MessageOf<NotFoundError>([] { ClusterSpec().job_tasks("ps"); }), HasSubstr("the cluster has no jobs"));
  EXPECT_THAT(MessageOf<NotFoundError>([] { Sparse().task_address("worker", 2); }),
              HasSubstr("No task with index 2 in job 'worker'; it has indices 1, 3"));
  EXPECT_THROW(Dense().task_indices("x"), NotFoundError);
  EXPECT_THROW(Dense().task_address("x", 0), NotFoundError);
}

TEST(ClusterSpecTest, BadJobsAreRefused) {
  for (const char* job : {"", "1ps", "ps-a", "_ps", "p s", "/job:ps", "ps\n"}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ClusterSpec({{job, {"h:1"}}}); }), HasSubstr(job));
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ClusterSpec::FromSparse({{"ps", {{-1, "h:1"}}}});
              }),
              HasSubstr("got -1 in job 'ps'"));
  EXPECT_THROW(ClusterSpec::FromSparse({{"ps", {{1'000'000, "h:1"}}}}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                ClusterSpec({{"ps", {"a:1", "b"}}});
              }),
              HasSubstr("\"b\": the port is missing; in /job:ps/task:1"));
}

TEST(AddressTest, GoodOnes) {
  for (const auto& [text, host, port] : std::vector<std::tuple<std::string, std::string, int>>{
           {"localhost:2222", "localhost", 2222},
           {"10.0.0.1:0", "10.0.0.1", 0},
           {"[::1]:65535", "::1", 65535},
           {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
           {"my-host_2.example.org:00080", "my-host_2.example.org", 80}}) {
    const HostPort parsed = ParseAddress(text);
    EXPECT_EQ(parsed.host, host) << text;
    EXPECT_EQ(parsed.port, port) << text;
  }
}

TEST(AddressTest, BadOnesSayWhy) {
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{{"", "it is empty"},
                                                        {"host", "the port is missing"},
                                                        {"host:", "the port is missing"},
                                                        {":80", "the host is missing"},
                                                        {"host:80a", "\"80a\" is not a number"},
                                                        {"host:-1", "\"-1\" is not a number"},
                                                        {"host: 80", "\" 80\" is not a number"},
                                                        {"host:65536", "above 65535"},
                                                        {"host:99999999999999999999", "above 65535"},
                                                        {"a:1,b:2", "own entry"},
                                                        {"a:b:80", "more than one ':'"},
                                                        {"::1", "write \"[::1]:port\""},
                                                        {"::1:80", "in brackets"},
                                                        {"fe80::1:2:3:4:5:80", "in brackets"},
                                                        {"[::1", "no ']'"},
                                                        {"[::1]", "the port is missing"},
                                                        {"[::1]80", "the port is missing"},
                                                        {"[host]:80", "\"host\" is not an IPv6 address"},
                                                        {"grpc://host:80", "leave out \"grpc://\""},
                                                        {"ho st:80", "no host name has: ' '"},
                                                        {"host/x:80", "no host name has: '/'"},
                                                        {"'host':80", "no host name has"}}) {
    const std::string message = MessageOf<InvalidArgumentError>([&, t = text] { ParseAddress(t); });
    EXPECT_THAT(message, StartsWith("[ClusterSpec] expected an address \"host:port\"; got \"" + text + "\""));
    EXPECT_THAT(message, HasSubstr(why));
  }
}

TEST(TaskNameTest, IsADevicePrefix) { EXPECT_EQ(TaskName("ps", 3), "/job:ps/task:3"); }

TEST(ClusterSpecTest, TasksAreListedByJobAndIndex) {
  const ClusterSpec spec = ClusterSpec::FromSparse({{"worker", {{3, "w:3"}, {1, "w:1"}}}, {"ps", {{0, "p:0"}}}});
  EXPECT_EQ(spec.tasks(), (std::vector<std::pair<std::string, int>>{{"ps", 0}, {"worker", 1}, {"worker", 3}}));
  EXPECT_TRUE(ClusterSpec().tasks().empty());
}

}  // namespace
}  // namespace cohort
