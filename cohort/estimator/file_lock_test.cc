#include "cohort/estimator/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort::estimator {
namespace {

using cohort::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FileLockTest, ASecondOwnerIsToldTheFirst) {
  const TempFolder folder;
  const std::string path = folder / "lock";
  auto first = std::make_unique<FileLock>(path, "chief");
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { FileLock(path, "chief"); }),
              AllOf(HasSubstr(path), HasSubstr("one chief"), HasSubstr("process " + std::to_string(getpid()))));
  EXPECT_EQ(FileLock::StateOf(path), FileLock::State::kHeld);
  first.reset();
  EXPECT_EQ(FileLock::StateOf(path), FileLock::State::kFree);
  EXPECT_EQ(FileLock::StateOf(folder / "missing"), FileLock::State::kFree);
  FileLock(path, "chief");
}

TEST(FileLockTest, WhatCannotBeOpenedIsNotCalledFree) {
  const TempFolder folder;
  EXPECT_EQ(FileLock::StateOf(folder.path()), FileLock::State::kUnknown);
}

TEST(FileLockTest, AKilledProcessFreesItsLock) {
  const TempFolder folder;
  const std::string path = folder / "lock";
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FileLock lock(path, "chief");
    if (write(pipes[1], "x", 1) != 1) _exit(1);
    alarm(60);  // ends this process if the test has died
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(pipes[0], &byte, 1), 1);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { FileLock(path, "chief"); }),
              HasSubstr("process " + std::to_string(child)));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  FileLock(path, "chief");
  close(pipes[0]);
  close(pipes[1]);
}

TEST(FileLockTest, AFolderThatIsMissingIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(MessageOf<NotFoundError>([&] { FileLock(folder / "missing/lock", "chief"); }), HasSubstr("missing/lock"));
}

}  // namespace
}  // namespace cohort::estimator
