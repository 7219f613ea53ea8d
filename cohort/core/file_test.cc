#include "cohort/core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "cohort/core/error.h"
#include "cohort/core/testing/count_entries.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FileTest, AtomicFileAppearsWholeOrNotAtAll) {
  const testing::TempFolder folder;
  const std::string path = folder / "f";
  {
    AtomicFile file(path);
    file.Append("half");
    EXPECT_FALSE(FileExists(path));
    EXPECT_EQ(testing::CountEntries(folder.path().c_str()), 1);
  }
  EXPECT_EQ(testing::CountEntries(folder.path().c_str()), 0);
  WriteFileAtomically(path, "one");
  WriteFileAtomically(path, "two");
  EXPECT_EQ(ReadFile(path), "two");
  EXPECT_EQ(testing::CountEntries(folder.path().c_str()), 1);
}

TEST(FileTest, ReadStopsAtTheEnd) {
  const testing::TempFolder folder;
  const std::string path = folder / "f";
  WriteFileAtomically(path, "0123456789");
  const RandomAccessFile file(path);
  char out[8];
  EXPECT_EQ(file.Size(), 10);
  EXPECT_EQ(file.Read(6, out), 4u);
  EXPECT_EQ(std::string(out, 4), "6789");
  EXPECT_EQ(file.Read(100, out), 0u);
}

TEST(FileTest, ErrorsHaveTheirCodeAndPath) {
  const testing::TempFolder folder;
  EXPECT_THROW(ReadFile(folder / "none"), NotFoundError);
  EXPECT_THROW(ReadFile(folder.path()), FailedPreconditionError);
  EXPECT_THROW(WritableFile file(folder / "no/such/dir"), NotFoundError);
  const std::string path = folder / "no/f";
  EXPECT_THAT(MessageOf<NotFoundError>([&] { WriteFileAtomically(path, "x"); }),
              AllOf(HasSubstr("cannot write '" + path + "' in the folder '" + folder / "no" + "'"),
                    HasSubstr("make it first"), HasSubstr("No such file")));
  EXPECT_FALSE(RemoveFile(folder / "none"));
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
  const testing::TempFolder folder;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(WriteFileAtomically(folder / "f", std::string(4096, 'x')), ResourceExhaustedError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_EQ(testing::CountEntries(folder.path().c_str()), 0);
}

TEST(FileTest, DirectoryOf) {
  EXPECT_EQ(DirectoryOf("/a/b/c"), "/a/b");
  EXPECT_EQ(DirectoryOf("/a"), "/");
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("a"), ".");
}

}  // namespace
}  // namespace cohort
