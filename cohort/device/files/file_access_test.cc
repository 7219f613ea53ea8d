#include "cohort/device/files/file_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const ClientId kSelf{"/job:ps/replica:0/task:0", 1};
const StepOrigin kOwn{kSelf, 5};
const StepOrigin kPeer{{"/job:worker/replica:0/task:0", 2}, 6};
const StepOrigin kRestarted{{"/job:ps/replica:0/task:0", 2}, 6};

class FileAccessTest : public ::testing::Test {
 protected:
  FileAccessTest() : allowed_(folder_.path() + "/data"), outside_(folder_.path() + "/data2") {
    CreateDirectories(allowed_ + "/inner");
    CreateDirectories(outside_);
    access_ = std::make_shared<FileAccess>(kSelf, std::vector<std::string>{allowed_});
  }
  void ExpectRefused(const std::string& path) {
    EXPECT_THAT(MessageOf<PermissionDeniedError>([&] { access_->Check(path); }),
                AllOf(HasSubstr("'" + path + "'"), HasSubstr(allowed_), HasSubstr("--allow_path")));
  }

  testing::TempFolder folder_;
  const std::string allowed_;
  const std::string outside_;
  std::shared_ptr<FileAccess> access_;
};

TEST_F(FileAccessTest, PathsInTheFolderMayBeUsedBeforeTheyExist) {
  EXPECT_NO_THROW(access_->Check(allowed_ + "/model"));
  EXPECT_NO_THROW(access_->Check(allowed_ + "/inner/../new/model.index"));
  ExpectRefused(outside_ + "/model");  // the folder's name begins with the other's
  ExpectRefused(allowed_ + "/../data2/model");
  ExpectRefused(allowed_ + "/none/../../data2/model");
  ExpectRefused("/etc/passwd");
}

TEST_F(FileAccessTest, LinksAreResolved) {
  std::filesystem::create_symlink(outside_, allowed_ + "/link");
  ExpectRefused(allowed_ + "/link/model");
  std::filesystem::create_symlink(outside_ + "/none", allowed_ + "/dangling");
  ExpectRefused(allowed_ + "/dangling");
  std::filesystem::create_symlink(allowed_, outside_ + "/back");
  EXPECT_NO_THROW(access_->Check(outside_ + "/back/model"));
}

TEST_F(FileAccessTest, AnEmptyPathAndOneWithANulAreRefused) {
  EXPECT_THROW(access_->Check(""), PermissionDeniedError);
  EXPECT_THROW(access_->Check(allowed_ + std::string("/../data2/x\0/../../data/x", 25)), PermissionDeniedError);
}

TEST_F(FileAccessTest, FoldersMustExist) {
  EXPECT_THROW(FileAccess(kSelf, {folder_.path() + "/none"}), NotFoundError);
  EXPECT_THROW(FileAccess(kSelf, {}), InvalidArgumentError);
}

TEST_F(FileAccessTest, BoundsEveryoneButTheProcessItself) {
  ResourceManager resources;
  EXPECT_NO_THROW(FileAccess::CheckPath(resources, &kPeer, "/etc/passwd"));
  FileAccess::Install(resources, access_);
  EXPECT_NO_THROW(FileAccess::CheckPath(resources, &kOwn, "/etc/passwd"));
  EXPECT_NO_THROW(FileAccess::CheckPath(resources, &kPeer, allowed_ + "/model"));
  for (const StepOrigin* origin : {&kPeer, &kRestarted, static_cast<const StepOrigin*>(nullptr)}) {
    EXPECT_THROW(FileAccess::CheckPath(resources, origin, "/etc/passwd"), PermissionDeniedError);
  }
  resources.Clear("");
  EXPECT_THROW(FileAccess::CheckPath(resources, &kPeer, "/etc/passwd"), PermissionDeniedError);
}

}  // namespace
}  // namespace cohort
