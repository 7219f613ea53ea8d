#include "cohort/cluster/tls/peer_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/testing/test_certificates.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestCertificates;

constexpr char kPs0[] = "/job:ps/replica:0/task:0";

class PeerCheckTest : public ::testing::Test {
 protected:
  // Checks what a peer with these files shows to the worker of job_.
  CertificateVerdict Judge(const TlsOptions& peer, PeerSide side = PeerSide::kDialer,
                           const std::string& expected_task = "") const {
    return check_.Check(ReadTlsFile(peer.certificate_file), "", side, expected_task);
  }

  const TestCertificates job_;
  const PeerCheck check_{*LoadTlsIdentity(job_.For("worker", 1))};
};

TEST_F(PeerCheckTest, TakesTheTasksOfItsJob) {
  for (const PeerSide side : {PeerSide::kDialer, PeerSide::kAcceptor}) {
    const CertificateVerdict verdict = Judge(job_.For("ps"), side, kPs0);
    EXPECT_EQ(verdict.fault, CertificateFault::kNone) << verdict.reason;
    EXPECT_EQ(verdict.task, kPs0);
    EXPECT_EQ(verdict.reason, "");
  }
  EXPECT_EQ(Judge(job_.For("client")).task, "/job:client");
}

TEST_F(PeerCheckTest, AMissingCertificateIsNamed) {
  const CertificateVerdict verdict = check_.Check("", "", PeerSide::kDialer, "");
  EXPECT_EQ(verdict.fault, CertificateFault::kMissing);
  EXPECT_THAT(verdict.reason, HasSubstr("missing"));
  EXPECT_EQ(
      check_.Check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", PeerSide::kDialer, "").fault,
      CertificateFault::kMissing);
}

// Another authority, even one with the same name and job.
TEST_F(PeerCheckTest, AForeignCertificateIsNamed) {
  const TestCertificates same_name;
  const CertificateVerdict verdict = Judge(same_name.For("ps"));
  EXPECT_EQ(verdict.fault, CertificateFault::kForeign);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("foreign"), HasSubstr(job_.folder() / "ca.pem"), HasSubstr(kPs0)));
  EXPECT_EQ(verdict.task, "");
  // The same if the peer also shows its authority: the certificate of the task is named.
  const CertificateVerdict with_chain = check_.Check(same_name.authority().Issue(kPs0, ValidForDays(1)).certificate,
                                                     same_name.authority().certificate(), PeerSide::kDialer, "");
  EXPECT_THAT(with_chain.reason, AllOf(HasSubstr("foreign"), HasSubstr(kPs0)));
}

// The same authority, but another job: a company may have one authority for all jobs.
TEST_F(PeerCheckTest, TheCertificateOfAnotherJobIsForeign) {
  const TestCertificates other("other");
  TlsOptions own = other.For("ps");
  const std::string both = job_.folder() / "both.pem";
  WriteCertificateFile(both, job_.authority().certificate() + other.authority().certificate());
  own.ca_file = both;
  const PeerCheck check(*LoadTlsIdentity(own));
  EXPECT_EQ(check.Check(ReadTlsFile(own.certificate_file), "", PeerSide::kDialer, "").fault, CertificateFault::kNone);
  const CertificateVerdict verdict =
      check.Check(ReadTlsFile(job_.For("worker").certificate_file), "", PeerSide::kDialer, "");
  EXPECT_EQ(verdict.fault, CertificateFault::kForeign);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("'test'"), HasSubstr("'other'")));
}

TEST_F(PeerCheckTest, AnExpiredCertificateIsNamedWithItsTime) {
  const CertificateVerdict verdict = Judge(job_.ExpiredFor("ps"));
  EXPECT_EQ(verdict.fault, CertificateFault::kExpired);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("expired"), HasSubstr("held until"), HasSubstr("GMT")));
}

TEST_F(PeerCheckTest, ACertificateThatDoesNotHoldYetIsNamed) {
  const std::time_t now = std::time(nullptr);
  const auto later = job_.authority().Issue(kPs0, {now + TestCertificates::kHour, now + 2 * TestCertificates::kHour});
  const CertificateVerdict verdict = check_.Check(later.certificate, "", PeerSide::kDialer, "");
  EXPECT_EQ(verdict.fault, CertificateFault::kExpired);
  EXPECT_THAT(verdict.reason, AllOf(HasSubstr("holds only from"), HasSubstr("clocks")));
}

TEST_F(PeerCheckTest, AnotherTasksCertificateIsNamed) {
  const CertificateVerdict verdict = Judge(job_.For("worker", 2), PeerSide::kAcceptor, kPs0);
  EXPECT_EQ(verdict.fault, CertificateFault::kOtherTask);
  EXPECT_THAT(verdict.reason,
              AllOf(HasSubstr("another task's"), HasSubstr("/job:worker/replica:0/task:2"), HasSubstr(kPs0)));
}

TEST_F(PeerCheckTest, AClientIsNoServer) {
  const CertificateVerdict verdict = Judge(job_.For("client"), PeerSide::kAcceptor);
  EXPECT_EQ(verdict.fault, CertificateFault::kOtherTask);
  EXPECT_THAT(verdict.reason, HasSubstr("/job:client"));
}

// A task must not be able to sign for others.
TEST_F(PeerCheckTest, ATaskIsNoAuthority) {
  const TestCertificates forger;
  // The chain leads from the forged certificate to a task's. The task's is no authority.
  const CertificateVerdict verdict = check_.Check(forger.authority().Issue(kPs0, ValidForDays(1)).certificate,
                                                  ReadTlsFile(job_.For("ps").certificate_file), PeerSide::kDialer, "");
  EXPECT_EQ(verdict.fault, CertificateFault::kForeign);
  // The authority itself is no task.
  EXPECT_NE(check_.Check(job_.authority().certificate(), "", PeerSide::kDialer, "").fault, CertificateFault::kNone);
}

TEST(CertificateSubjectTest, KnowsTheFormsOfNames) {
  const auto task_of = [](const char* uri) {
    const auto subject = ParseSubject(uri);
    return subject ? subject->job_id + " " + subject->task : "none";
  };
  EXPECT_EQ(task_of("cohort://j/job:ps/replica:0/task:12"), "j /job:ps/replica:0/task:12");
  EXPECT_EQ(task_of("cohort://j.k-1/job:client"), "j.k-1 /job:client");
  EXPECT_EQ(task_of("cohort://j"), "j ");
  for (const char* uri : {"", "https://j/job:ps/replica:0/task:0", "cohort:///job:client", "cohort://j/",
                          "cohort://j/job:ps", "cohort://j/job:ps/replica:0/task:",
                          "cohort://j/job:ps/replica:1/task:0", "cohort://j/job:ps/replica:0/task:0/device:CPU:0",
                          "cohort://j/job:/replica:0/task:0", "cohort://a b/job:client"}) {
    EXPECT_EQ(task_of(uri), "none") << uri;
  }
}

TEST(CertificateSubjectTest, ATaskMayBeItselfAndAClient) {
  EXPECT_TRUE(MayBe(kPs0, kPs0));
  EXPECT_TRUE(MayBe(kPs0, "/job:client/replica:0/task:123"));
  EXPECT_TRUE(MayBe("/job:client", "/job:client/replica:0/task:123"));
  EXPECT_FALSE(MayBe("/job:client", kPs0));
  EXPECT_FALSE(MayBe("/job:ps/replica:0/task:1", kPs0));
  EXPECT_FALSE(MayBe(kPs0, "/job:clients/replica:0/task:0"));
  EXPECT_FALSE(MayBe("", "/job:client/replica:0/task:123"));
}

}  // namespace
}  // namespace cohort
