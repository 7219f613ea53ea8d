#include "tools/cohort/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"

namespace cohort::tools {
namespace {

TEST(TokenFileTest, OnlyTheUserCanReadItAndItGoesWithTheLaunch) {
  const testing::TempFolder folder;
  setenv("XDG_RUNTIME_DIR", (folder / "run").c_str(), 1);
  std::string path;
  {
    const TokenFile file("secret");
    path = file.path();
    EXPECT_EQ(path, StrCat(folder / "run/cohort/launch-", getpid(), ".token"));
    EXPECT_EQ(ReadFile(path), "secret\n");
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
  }
  EXPECT_FALSE(FileExists(path));
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(TokenFileTest, FilesOfKilledLaunchesAreRemoved) {
  const testing::TempFolder folder;
  setenv("XDG_RUNTIME_DIR", (folder / "").c_str(), 1);
  CreateDirectories(folder / "cohort");
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  const std::string of_ended = StrCat(folder / "cohort/launch-", ended, ".token");
  const std::string of_living = StrCat(folder / "cohort/launch-", getppid(), ".token");
  const std::string other = folder / "cohort/launch-x.token";
  for (const std::string& path : {of_ended, of_living, other}) WriteFileAtomically(path, "t\n");
  const TokenFile file("secret");
  EXPECT_FALSE(FileExists(of_ended));
  EXPECT_TRUE(FileExists(of_living));
  EXPECT_TRUE(FileExists(other));
  unsetenv("XDG_RUNTIME_DIR");
}

TEST(TokenFileTest, WithoutATokenOrAFolderThereIsNone) {
  const testing::TempFolder folder;
  setenv("XDG_RUNTIME_DIR", (folder / "file").c_str(), 1);
  WriteFileAtomically(folder / "file", "");
  EXPECT_EQ(TokenFile("secret").path(), "");
  EXPECT_EQ(TokenFile("").path(), "");
  unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace cohort::tools
