#include "cohort/cluster/tls/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestCertificates;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

// Unsets the variables, and restores them.
class TlsFilesTest : public ::testing::Test {
 protected:
  static constexpr const char* kVariables[] = {"COHORT_TLS_CA", "COHORT_TLS_CERTIFICATE", "COHORT_TLS_KEY",
                                               "COHORT_TLS_FOLDER"};
  TlsFilesTest() {
    for (const char* name : kVariables) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? "" : value);
      unsetenv(name);
    }
  }
  ~TlsFilesTest() override {
    for (size_t i = 0; i < before_.size(); ++i) {
      before_[i].empty() ? unsetenv(kVariables[i]) : setenv(kVariables[i], before_[i].c_str(), 1);
    }
  }
  static std::string ErrorOfLoading(const TlsOptions& files) {
    return ErrorOf([&] { LoadTlsIdentity(files); });
  }

  const TestCertificates job_;

 private:
  std::vector<std::string> before_;
};

TEST_F(TlsFilesTest, LoadsWhatTheAuthorityHasWritten) {
  const TlsOptions files = job_.For("ps", 3);
  EXPECT_EQ(ModeOf(files.key_file), 0600u);
  const auto identity = LoadTlsIdentity(files);
  EXPECT_EQ(identity->job_id, "test");
  EXPECT_EQ(identity->task, "/job:ps/replica:0/task:3");
  EXPECT_THAT(identity->key_pem, HasSubstr("PRIVATE KEY"));
  EXPECT_EQ(LoadTlsIdentity({}), nullptr);
}

TEST_F(TlsFilesTest, AKeyThatOthersCanReadIsRefused) {
  const TlsOptions files = job_.For("ps");
  for (const mode_t mode : {0640u, 0604u, 0620u}) {
    ASSERT_EQ(chmod(files.key_file.c_str(), mode), 0);
    EXPECT_THAT(ErrorOfLoading(files), AllOf(HasSubstr("PermissionDenied"), HasSubstr("chmod 600 " + files.key_file)));
  }
  ASSERT_EQ(chmod(files.key_file.c_str(), 0400), 0);
  EXPECT_NE(LoadTlsIdentity(files), nullptr);
}

TEST_F(TlsFilesTest, WhatIsWrongWithAFileIsNamed) {
  const TlsOptions good = job_.For("ps");
  TlsOptions files = good;
  files.key_file = job_.For("worker").key_file;
  EXPECT_THAT(ErrorOfLoading(files), AllOf(HasSubstr("is not that of the certificate"), HasSubstr(files.key_file)));
  files = good;
  files.certificate_file = good.key_file;
  EXPECT_THAT(ErrorOfLoading(files), AllOf(HasSubstr("expected a certificate"), HasSubstr(good.key_file)));
  files = good;
  files.ca_file = good.key_file;
  EXPECT_THAT(ErrorOfLoading(files), HasSubstr("expected a certificate in PEM form"));
  files = good;
  files.key_file = job_.folder() / "nothing";
  EXPECT_THAT(ErrorOfLoading(files), AllOf(HasSubstr("NotFound"), HasSubstr(files.key_file)));
  files = good;
  files.certificate_file = job_.folder().path();
  EXPECT_THAT(ErrorOfLoading(files), HasSubstr("expected a file"));
  EXPECT_THAT(ErrorOfLoading(job_.ExpiredFor("ps")), AllOf(HasSubstr("every peer would refuse"), HasSubstr("expired")));
  const TestCertificates other;
  files = job_.For("ps");
  files.ca_file = other.For("ps").ca_file;
  EXPECT_THAT(ErrorOfLoading(files), AllOf(HasSubstr("every peer would refuse"), HasSubstr("foreign")));
}

// No text of an error has a part of the key.
TEST_F(TlsFilesTest, AnErrorDoesNotShowTheKey) {
  const TlsOptions good = job_.For("ps");
  const std::string key = ReadKeyFile(good.key_file);
  TlsOptions files = good;
  files.certificate_file = good.key_file;
  files.ca_file = good.key_file;
  EXPECT_THAT(ErrorOfLoading(files), Not(HasSubstr(key.substr(40, 20))));
}

TEST_F(TlsFilesTest, TheOptionsComeBeforeTheVariablesAndThoseBeforeTheFolder) {
  EXPECT_TRUE(FindTlsFiles({}, "ps", 0).empty());
  setenv("COHORT_TLS_FOLDER", "/f", 1);
  EXPECT_EQ(FindTlsFiles({}, "ps", 1), (TlsOptions{"/f/ca.pem", "/f/ps-1.pem", "/f/ps-1.key"}));
  EXPECT_EQ(FindTlsFiles({}, "client", 0), (TlsOptions{"/f/ca.pem", "/f/client.pem", "/f/client.key"}));
  setenv("COHORT_TLS_CA", "/a", 1);
  EXPECT_THAT(ErrorOf([] { FindTlsFiles({}, "ps", 1); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("COHORT_TLS_KEY"), HasSubstr("'/a'")));
  setenv("COHORT_TLS_CERTIFICATE", "/b", 1);
  setenv("COHORT_TLS_KEY", "/c", 1);
  EXPECT_EQ(FindTlsFiles({}, "ps", 1), (TlsOptions{"/a", "/b", "/c"}));
  EXPECT_EQ(FindTlsFiles({"1", "2", "3"}, "ps", 1), (TlsOptions{"1", "2", "3"}));
  EXPECT_THAT(ErrorOf([] {
                FindTlsFiles({"1", "", "3"}, "ps", 1);
              }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("the options")));
}

TEST_F(TlsFilesTest, ACertificateIsForOneTaskAndForClients) {
  const auto identity = LoadTlsIdentity(job_.For("ps"));
  CheckIsFor(*identity, "/job:ps/replica:0/task:0");
  CheckIsFor(*identity, "/job:client/replica:0/task:77");
  EXPECT_THAT(
      ErrorOf([&] { CheckIsFor(*identity, "/job:ps/replica:0/task:1"); }),
      AllOf(HasSubstr("FailedPrecondition"), HasSubstr("/task:1"), HasSubstr("/task:0"), HasSubstr("ps-0.pem")));
}

TEST_F(TlsFilesTest, AnAuthorityCanBeReadAgain) {
  const std::string ca = job_.folder() / "ca.pem";
  const std::string key = job_.folder() / "ca.key";
  WriteCertificateFile(ca, job_.authority().certificate());
  WriteKeyFile(key, job_.authority().key());
  const CertificateAuthority again(ca, key);
  EXPECT_EQ(again.job_id(), "test");
  const TlsOptions files = TlsFilesIn(job_.folder().path(), "worker", 0);
  WriteTlsFiles(files, job_.authority().certificate(), again.Issue(SubjectOf("worker", 0), ValidForDays(1)));
  EXPECT_EQ(LoadTlsIdentity(files)->task, "/job:worker/replica:0/task:0");
  const TlsOptions task = job_.For("ps");
  EXPECT_THAT(ErrorOf([&] { CertificateAuthority(task.certificate_file, task.key_file); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("expected an authority")));
  EXPECT_THAT(ErrorOf([&] { CertificateAuthority(ca, task.key_file); }), HasSubstr("is not that of the authority"));
}

TEST_F(TlsFilesTest, AFileReplacesAnOlderOneAtOnce) {
  const std::string path = job_.folder() / "some.key";
  { std::ofstream(path) << "old"; }
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  WriteKeyFile(path, "new");
  EXPECT_EQ(ReadKeyFile(path), "new");
  MakePrivateFolder(job_.folder() / "a/b");
  EXPECT_EQ(ModeOf(job_.folder() / "a/b"), 0700u);
  MakePrivateFolder(job_.folder() / "a/b");
}

}  // namespace
}  // namespace cohort
