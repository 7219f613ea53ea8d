#include "cohort/core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

std::string FreshDir(const std::string& name) {
  const std::string dir = ::testing::TempDir() + "/file_test_" + name;
  std::filesystem::remove_all(dir);
  CreateDirectories(dir);
  return dir;
}

int CountFiles(const std::string& dir) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir)) ++count;
  return count;
}

TEST(FileTest, AtomicFileAppearsWholeOrNotAtAll) {
  const std::string dir = FreshDir("atomic");
  const std::string path = dir + "/f";
  {
    AtomicFile file(path);
    file.Append("half");
    EXPECT_FALSE(FileExists(path));
    EXPECT_EQ(CountFiles(dir), 1);
  }
  EXPECT_EQ(CountFiles(dir), 0);
  WriteFileAtomically(path, "one");
  WriteFileAtomically(path, "two");
  EXPECT_EQ(ReadFile(path), "two");
  EXPECT_EQ(CountFiles(dir), 1);
}

TEST(FileTest, ReadStopsAtTheEnd) {
  const std::string path = FreshDir("read") + "/f";
  WriteFileAtomically(path, "0123456789");
  const RandomAccessFile file(path);
  char out[8];
  EXPECT_EQ(file.Size(), 10);
  EXPECT_EQ(file.Read(6, out), 4u);
  EXPECT_EQ(std::string(out, 4), "6789");
  EXPECT_EQ(file.Read(100, out), 0u);
}

TEST(FileTest, ErrorsHaveTheirCodeAndPath) {
  const std::string dir = FreshDir("errors");
  EXPECT_THROW(ReadFile(dir + "/none"), NotFoundError);
  EXPECT_THROW(ReadFile(dir), FailedPreconditionError);
  EXPECT_THROW(WritableFile file(dir + "/no/such/dir"), NotFoundError);
  EXPECT_FALSE(RemoveFile(dir + "/none"));
  try {
    WritableFile full("/dev/full");
    full.Append("x");
    ADD_FAILURE();
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dev/full: No space left"));
  }
}

// The limit makes the kernel write a part of the bytes first: a short write, then the error.
TEST(FileTest, ShortWriteIsAnError) {
  const std::string dir = FreshDir("short");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(WriteFileAtomically(dir + "/f", std::string(4096, 'x')), ResourceExhaustedError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_EQ(CountFiles(dir), 0);
}

TEST(FileTest, DirectoryOf) {
  EXPECT_EQ(DirectoryOf("/a/b/c"), "/a/b");
  EXPECT_EQ(DirectoryOf("/a"), "/");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("a"), ".");
}

}  // namespace
}  // namespace cohort
