#include "tools/cohort/launch_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "cohort/cluster/tls/tls_files.h"

namespace cohort::tools {
namespace {

using ::testing::UnorderedElementsAre;

TlsOptions FilesIn(const Environment& environment) {
  return {environment.at("COHORT_TLS_CA"), environment.at("COHORT_TLS_CERTIFICATE"), environment.at("COHORT_TLS_KEY")};
}

TEST(LaunchCertificatesTest, EachTaskGetsItsOwnAndAnEvaluatorThatOfAClient) {
  const std::vector<TaskId> tasks = TasksOf({.ps = 1, .workers = 2, .evaluator = 1});
  const LaunchCertificates certificates(tasks);
  std::vector<std::string> subjects;
  for (const TaskId& task : tasks) {
    Environment environment{{"COHORT_TLS_FOLDER", "/of/the/user"}, {"COHORT_TLS_CA", "/of/the/user"}};
    certificates.SetFiles(task, &environment);
    EXPECT_EQ(environment.count("COHORT_TLS_FOLDER"), 0u);
    subjects.push_back(LoadTlsIdentity(FilesIn(environment))->task);
  }
  EXPECT_THAT(subjects, UnorderedElementsAre("/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0",
                                             "/job:worker/replica:0/task:1", "/job:client"));
}

TEST(LaunchCertificatesTest, TheFolderIsPrivateAndEndsWithTheObject) {
  std::optional<LaunchCertificates> certificates(TasksOf({.workers = 1}));
  const std::string folder = certificates->folder();
  struct stat info {};
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(entry.path().filename(), "ca.key");  // nobody can make more certificates
  }
  certificates.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Certificates of two launches do not fit each other.
TEST(LaunchCertificatesTest, EachLaunchIsAJobOfItsOwn) {
  const std::vector<TaskId> tasks = TasksOf({.workers = 1});
  const LaunchCertificates one(tasks);
  const LaunchCertificates two(tasks);
  Environment first, second;
  one.SetFiles(tasks[0], &first);
  two.SetFiles(tasks[0], &second);
  EXPECT_NE(LoadTlsIdentity(FilesIn(first))->job_id, LoadTlsIdentity(FilesIn(second))->job_id);
}

}  // namespace
}  // namespace cohort::tools
