#include "cohort/cluster/cluster_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

const ClusterSpec kTwoWorkers({{"ps", {"h:1"}}, {"worker", {"h:2", "h:3"}}});

TEST(ClusterResolverTest, ASimpleResolverGivesItsValues) {
  const SimpleClusterResolver resolver(kTwoWorkers, "worker", 1, "grpc");
  const ClusterResolver& any = resolver;
  EXPECT_EQ(any.cluster_spec(), kTwoWorkers);
  EXPECT_EQ(any.task_type(), "worker");
  EXPECT_EQ(any.task_id(), 1);
  EXPECT_EQ(any.rpc_layer(), "grpc");
  EXPECT_EQ(any.master(), "grpc://h:3");
  EXPECT_EQ(any.master("ps", 0), "grpc://h:1");
  EXPECT_EQ(any.master("ps", 0, ""), "h:1");
  EXPECT_THROW(any.master("ps", 1), NotFoundError);
}

TEST(ClusterResolverTest, WithoutATaskThereIsNoMaster) {
  const SimpleClusterResolver resolver(kTwoWorkers);
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  EXPECT_EQ(resolver.rpc_layer(), std::nullopt);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { resolver.master(); }), HasSubstr("no type"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { resolver.master("worker"); }), HasSubstr("no index"));
  EXPECT_EQ(SimpleClusterResolver(ClusterSpec()).master(), "");
  EXPECT_EQ(SimpleClusterResolver(ClusterSpec({{"worker", {"h:1"}}})).master(), "");
}

// The variable may be set after the resolver was made, and deleted again.
TEST(ClusterResolverTest, TheEnvironmentIsReadAtEachCall) {
  const char* before = std::getenv("TF_CONFIG");
  const std::string kept = before == nullptr ? "" : before;
  unsetenv("TF_CONFIG");
  const ClusterResolverPtr resolver = std::make_shared<TFConfigClusterResolver>();
  EXPECT_TRUE(resolver->cluster_spec().empty());
  setenv("TF_CONFIG", R"({"cluster": {"ps": ["h:1"], "chief": ["h:2"]}, "task": {"type": "chief", "index": 0}})", 1);
  EXPECT_EQ(resolver->task_type(), "chief");
  EXPECT_EQ(resolver->master(), "h:2");
  unsetenv("TF_CONFIG");
  EXPECT_EQ(resolver->task_type(), std::nullopt);
  if (before != nullptr) setenv("TF_CONFIG", kept.c_str(), 1);
}

}  // namespace
}  // namespace cohort
