#include "cohort/cluster/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("COHORT_TOKEN");
    unsetenv("COHORT_TOKEN_FILE");
    setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
  }
  static std::string Refusal() {
    try {
      return "token " + JobToken();
    } catch (const Error& e) {
      return std::string(CodeName(e.code())) + ": " + e.what();
    }
  }
  std::string Put(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  const testing::TempFolder folder_;
};

TEST_F(TokenTest, TheUsersFileIsMadeOnceAndForTheUserOnly) {
  const std::string token = JobToken();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(JobToken(), token);
  struct stat info;
  ASSERT_EQ(stat((folder_ / "cohort/token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(TokenTest, TheEnvironmentComesFirst) {
  setenv("COHORT_TOKEN_FILE", Put("file", "of the file\n", 0600).c_str(), 1);
  EXPECT_EQ(JobToken(), "of the file");
  setenv("COHORT_TOKEN", "of the variable", 1);
  EXPECT_EQ(JobToken(), "of the variable");
}

TEST_F(TokenTest, WhatIsNoTokenIsNamed) {
  setenv("COHORT_TOKEN", " ", 1);
  EXPECT_THAT(Refusal(), HasSubstr("InvalidArgument: [token] COHORT_TOKEN is empty"));
  unsetenv("COHORT_TOKEN");
  const std::string open = Put("open", "x", 0644);
  setenv("COHORT_TOKEN_FILE", open.c_str(), 1);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("chmod 600 " + open), HasSubstr("644")));
  const std::string empty = Put("empty", "\n", 0600);
  setenv("COHORT_TOKEN_FILE", empty.c_str(), 1);
  EXPECT_THAT(Refusal(), HasSubstr(empty + " holds no token"));
  setenv("COHORT_TOKEN_FILE", (folder_ / "none").c_str(), 1);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("NotFound"), HasSubstr(folder_ / "none")));
}

TEST_F(TokenTest, APlaceThatCannotBeWrittenIsNamed) {
  setenv("XDG_CONFIG_HOME", Put("no_folder", "", 0600).c_str(), 1);
  EXPECT_THAT(Refusal(), HasSubstr(folder_ / "no_folder/cohort"));
  unsetenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::string saved = home == nullptr ? "" : home;
  unsetenv("HOME");
  EXPECT_THAT(Refusal(), HasSubstr("neither COHORT_TOKEN, COHORT_TOKEN_FILE nor HOME is set"));
  if (home != nullptr) setenv("HOME", saved.c_str(), 1);
}

}  // namespace
}  // namespace cohort
