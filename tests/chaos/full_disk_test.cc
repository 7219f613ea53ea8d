// A disk is full when the chief saves. Training goes on, and ends only after several saves in a row have failed, with
// an error that names the disk. The test mounts a small disk of its own. It is skipped if this user may not mount a
// disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kNoMounts = 77;

class FullDiskTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
  // Starts a parameter server, and a worker whose logdir is a disk of this size, which only the worker sees.
  LaunchedProgram& Start(const char* size, const Arguments& more) {
    cluster_.Start("ps", 0, {"--orphan_ms=300"});
    const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
    const std::string options = StrCat("size=", size);
    // The variables have 3.2 MB.
    Arguments arguments = {"--size=200000", "--logdir=" + folder_.path(), "--save_secs=0.1", "--pause_ms=5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cluster_.Start("worker", 0, arguments, {.in_child = [this, spaces, options] {
                            if (unshare(spaces) != 0 ||
                                mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                                mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, options.c_str()) != 0) {
                              _exit(kNoMounts);
                            }
                          }});
  }
  // Returns the path of the worker's logdir in this process.
  std::string Disk() { return StrCat("/proc/", cluster_.task("worker", 0).pid(), "/root", folder_.path()); }
  // Waits until the worker's newest checkpoint is another one than `before`. Returns it, or "" if it does not change or
  // the worker ends.
  std::string NextCheckpoint(const std::string& before) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (std::chrono::steady_clock::now() < deadline && kill(cluster_.task("worker", 0).pid(), 0) == 0) {
      const std::string now = LatestCheckpoint(Disk());
      if (!now.empty() && now != before) return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  // Writes until the disk is full.
  static void Fill(const std::string& path) {
    std::ofstream out(path, std::ios::binary);
    const std::string block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }

  const TempFolder folder_;
  ProcessCluster cluster_{{{"ps", 1}, {"worker", 1}}};
};

TEST_F(FullDiskTest, TheChiefNamesTheFolderItCannotWrite) {
  const int code = Start("2m", {"--max_save_failures=3"}).Wait();
  if (code == kNoMounts) GTEST_SKIP() << "this user may not mount a small disk";
  EXPECT_EQ(code, 1) << cluster_.Describe();
  EXPECT_THAT(cluster_.task("worker", 0).err(),
              AllOf(HasSubstr("a checkpoint could not be written (1 of at most 3 in a row)"),
                    HasSubstr("a checkpoint could not be written (2 of at most 3 in a row)"),
                    HasSubstr("no checkpoint could be written 3 times in a row: the training ends"),
                    HasSubstr("chaos_task: ResourceExhausted"), HasSubstr(folder_.path()),
                    HasSubstr("No space left on device")));
  EXPECT_EQ(cluster_.task("ps", 0).Wait(), 1) << cluster_.Describe();
}

// Steps go on while the disk is full. When there is room again, so do the checkpoints, and the failures are forgotten.
TEST_F(FullDiskTest, TrainingGoesOnAfterSavesThatFail) {
  LaunchedProgram& worker = Start("48m", {"--max_save_failures=1000000"});
  if (!worker.WaitForText("acked 1 ") && worker.Wait() == kNoMounts) {
    GTEST_SKIP() << "this user may not mount a small disk";
  }
  std::string newest = NextCheckpoint("");
  ASSERT_NE(newest, "") << cluster_.Describe();
  for (int round = 1; round <= 3; ++round) {
    Fill(Disk() + "/ballast");
    ASSERT_TRUE(worker.WaitForText("a checkpoint could not be written (2 of at most 1000000 in a row)", round))
        << cluster_.Describe();
    const int steps = cluster_.CountLines("worker", 0, "acked");
    ASSERT_TRUE(cluster_.WaitForLines("worker", 0, "acked", steps + 5));
    const std::string full = LatestCheckpoint(Disk());
    ASSERT_NE(full, "") << "the last good one stays";
    std::filesystem::remove(Disk() + "/ballast");
    newest = NextCheckpoint(full);
    ASSERT_NE(newest, "") << cluster_.Describe();
  }
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait(), 0) << cluster_.Describe();
}

}  // namespace
}  // namespace cohort::testing
