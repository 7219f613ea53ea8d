// A disk is full when the chief saves. The program then ends with an error that names the disk. The test mounts a small
// disk of its own. It is skipped if this user may not mount a disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cohort/core/testing/temp_folder.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FullDiskTest, TheChiefNamesTheFolderItCannotWrite) {
  UseTestToken();
  constexpr int kNoMounts = 77;
  const TempFolder folder;
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.Start("ps", 0, {"--orphan_ms=300"});
  const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  // The variables have 3.2 MB, and the disk has 2 MB. Only this task sees the disk.
  cluster.Start("worker", 0, {"--size=200000", "--logdir=" + folder.path(), "--save_secs=0.1", "--pause_ms=5"},
                {.in_child = [&] {
                  if (unshare(spaces) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                      mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
                    _exit(kNoMounts);
                  }
                }});
  const int code = cluster.task("worker", 0).Wait();
  if (code == kNoMounts) GTEST_SKIP() << "this user may not mount a small disk";
  EXPECT_EQ(code, 1) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 0).err(), AllOf(HasSubstr("chaos_task: ResourceExhausted"),
                                                     HasSubstr(folder.path()), HasSubstr("No space left on device")));
  EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();
}

}  // namespace
}  // namespace cohort::testing
