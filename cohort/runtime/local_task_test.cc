#include "cohort/runtime/local_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LocalTaskTest, RegistersNothingAfterItHasEnded) {
  const std::string name = "/job:worker/replica:0/task:1";
  LocalTask task({name, 1}, std::make_shared<DeviceSet>(std::vector<std::unique_ptr<Device>>()),
                 std::make_shared<TaskResources>());
  ExecutableSpec spec;
  spec.key = {7, 1};
  task.Register(std::move(spec));
  EXPECT_EQ(task.num_executables(), 1u);
  task.CloseAll(Status(Code::kCancelled, "the server stops"));
  EXPECT_EQ(task.num_executables(), 0u);
  ExecutableSpec late;
  late.key = {7, 2};
  EXPECT_THAT(MessageOf<UnavailableError>([&] { task.Register(std::move(late)); }),
              AllOf(HasSubstr(name), HasSubstr("the server stops")));
  EXPECT_EQ(task.num_executables(), 0u);
}

}  // namespace
}  // namespace cohort
