// Collectives of servers that have TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/collective/testing/group_harness.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestCluster;
using testing::TestGroup;

// Names the certificates of two workers in the environment.
class TlsGroupTest : public ::testing::Test {
 protected:
  TlsGroupTest() {
    for (int i = 0; i < 2; ++i) job_.For("worker", i);
    setenv("COHORT_TLS_FOLDER", job_.folder().path().c_str(), 1);
  }
  ~TlsGroupTest() override { unsetenv("COHORT_TLS_FOLDER"); }

  const cohort::testing::TestCertificates job_;
};

TEST_F(TlsGroupTest, GlooNeedsAPermissionBecauseItDoesNotEncrypt) {
  if (!IsBuilt(Algorithm::kGloo)) GTEST_SKIP() << "this build has no Gloo";
  TestCluster cluster({"grpc", 2, 1, Algorithm::kGloo});
  {
    const TestGroup refused(cluster, {});
    for (const Status& error : refused.errors()) {
      EXPECT_EQ(error.code(), Code::kPermissionDenied) << error.ToString();
      EXPECT_THAT(error.message(), AllOf(HasSubstr("GLOO"), HasSubstr("TLS"), HasSubstr("allow_insecure_collectives")));
    }
  }
  cluster.Stop(0);
  cluster.Stop(1);
  ServerOptions options = cohort::testing::LocalCluster::FastOptions();
  options.allow_insecure_collectives = true;
  TestCluster permissive({"grpc", 2, 1, Algorithm::kGloo}, std::chrono::seconds(60), options);
  const TestGroup allowed(permissive, {});
  for (const Status& error : allowed.errors()) EXPECT_TRUE(error.ok()) << error.ToString();
}

TEST_F(TlsGroupTest, NcclNeedsAPermissionAndAutoDoesWithoutIt) {
  COHORT_NEEDS_FAKE("the hosts are not real, so NCCL refuses their cards");
  const testing::Layout gpus = {"grpc", 2, 1, Algorithm::kAuto, 1, "GPU"};
  TestCluster cluster(gpus);
  const int ids = cuda::InstalledFakeNccl().ids();
  GroupOptions by_name;
  by_name.algorithm = Algorithm::kNccl;
  {
    const TestGroup refused(cluster, by_name);
    for (const Status& error : refused.errors()) {
      EXPECT_EQ(error.code(), Code::kPermissionDenied) << error.ToString();
      EXPECT_THAT(error.message(), AllOf(HasSubstr("NCCL"), HasSubstr("TLS"), HasSubstr("allow_insecure_collectives")));
    }
  }
  {
    const TestGroup group(cluster, {.key = 2});
    ASSERT_TRUE(group.joined());
    EXPECT_EQ(cuda::InstalledFakeNccl().ids(), ids);
  }
  cluster.Stop(0);
  cluster.Stop(1);
  ServerOptions options = cohort::testing::LocalCluster::FastOptions();
  options.allow_insecure_collectives = true;
  TestCluster permissive(gpus, std::chrono::seconds(60), options);
  const TestGroup allowed(permissive, by_name);
  for (const Status& error : allowed.errors()) EXPECT_TRUE(error.ok()) << error.ToString();
  EXPECT_EQ(cuda::InstalledFakeNccl().ids(), ids + 1);
}

TEST_F(TlsGroupTest, OurOwnAlgorithmsNeedNone) {
  TestCluster cluster({"grpc", 2, 1, Algorithm::kRing});
  const TestGroup group(cluster, {});
  for (const Status& error : group.errors()) EXPECT_TRUE(error.ok()) << error.ToString();
}

}  // namespace
}  // namespace cohort::collective
