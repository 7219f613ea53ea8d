// TLS between hosts: a cluster trains on addresses that are not loopback, with the files that `cohort certificates` has
// made, and without any permission to be insecure. And what both sides say if the files do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/guide_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kFirstHost[] = "10.7.0.1", kSecondHost[] = "10.7.0.2";
constexpr char kHosts[] = " --ps_hosts=10.7.0.1:2222 --worker_hosts=10.7.0.1:2223,10.7.0.2:2222";

class TlsHostsTest : public GuideTest {
 protected:
  TlsHostsTest() : GuideTest({kFirstHost, kSecondHost}) {}

  // Makes certificates for the cluster in the folder `name`.
  void MakeCertificates(const std::string& name) {
    auto& made =
        Type(kFirstHost, COHORT_PROGRAM + std::string(" certificates --job_id=job --out=") + File(name) + kHosts, {});
    ASSERT_EQ(made.Wait(), 0) << made.err();
  }
  // Starts a task with the files of `folder`.
  LaunchedProgram& Start(const std::string& host, const std::string& folder, const std::string& task) {
    return Type(
        host,
        std::string("exec ") + LINEAR_REGRESSION_PROGRAM + kHosts + task + " --max_steps=200 --steps_to_validate=50",
        {"COHORT_TLS_FOLDER=" + File(folder), kToken});
  }

  static constexpr char kToken[] = "COHORT_TOKEN=a token of the guides";
};

TEST_F(TlsHostsTest, AClusterTrainsWithoutAllowInsecure) {
  MakeCertificates("tls");
  auto& ps = Start(kFirstHost, "tls/10.7.0.1", " --job_name=ps --task_index=0");
  auto& worker = Start(kSecondHost, "tls/10.7.0.2", " --job_name=worker --task_index=1");
  ASSERT_TRUE(worker.WaitForText("Waiting for model to be ready")) << Output();  // otherwise it may start too late
  auto& chief = Start(kFirstHost, "tls/10.7.0.1", " --job_name=worker --task_index=0");
  for (LaunchedProgram* program : {&ps, &chief, &worker}) EXPECT_EQ(program->Wait(), 0) << Output();
  EXPECT_THAT(ps.err(), HasSubstr("Started server with target: grpc://10.7.0.1:2222"));
  EXPECT_THAT(ps.err(), HasSubstr(", with TLS"));
}

// The worker has the certificate of another authority, but knows that of the ps. So only the ps refuses.
TEST_F(TlsHostsTest, BothSidesSayWhyACertificateIsRefused) {
  MakeCertificates("tls");
  MakeCertificates("other");
  auto& mixed = Type(kFirstHost, "cat ../tls/ca.pem ../other/ca.pem > ../other/10.7.0.2/ca.pem", {});
  ASSERT_EQ(mixed.Wait(), 0) << mixed.err();
  auto& ps = Start(kFirstHost, "tls/10.7.0.1", " --job_name=ps --task_index=0");
  ASSERT_TRUE(ps.WaitForText("Started server")) << Output();
  auto& worker = Start(kSecondHost, "other/10.7.0.2", " --job_name=worker --task_index=1");
  EXPECT_EQ(worker.Wait(), 1) << Output();
  EXPECT_THAT(worker.err(), AllOf(HasSubstr("TLS handshake failed"), HasSubstr("/job:ps/replica:0/task:0"),
                                  HasSubstr("10.7.0.1:2222")));
  EXPECT_TRUE(ps.WaitForText("TLS handshake failed")) << Output();
  EXPECT_THAT(ps.err(), AllOf(ContainsRegex("10\\.7\\.0\\.2:[0-9]+"), HasSubstr("foreign")));
}

TEST_F(TlsHostsTest, AFileThatIsMissingOrOpenToOthersIsNamed) {
  MakeCertificates("tls");
  auto& elsewhere = Start(kSecondHost, "tls/10.7.0.2", " --job_name=ps --task_index=0 --bind=10.7.0.2:2222");
  EXPECT_EQ(elsewhere.Wait(), 1);
  EXPECT_THAT(elsewhere.err(), AllOf(HasSubstr("NotFound"), HasSubstr("ps-0.pem")));
  auto& open = Type(kFirstHost, "chmod 644 ../tls/10.7.0.1/ps-0.key", {});
  ASSERT_EQ(open.Wait(), 0);
  auto& ps = Start(kFirstHost, "tls/10.7.0.1", " --job_name=ps --task_index=0");
  EXPECT_EQ(ps.Wait(), 1);
  EXPECT_THAT(ps.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("chmod 600")));
}

}  // namespace
}  // namespace cohort::testing
