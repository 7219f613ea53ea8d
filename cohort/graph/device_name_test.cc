#include "cohort/graph/device_name.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  const char* text;
  const char* canonical;
};

class DeviceNameForms : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceNameForms, ParsesToCanonicalForm) {
  const DeviceName name = DeviceName::Parse(GetParam().text);
  EXPECT_EQ(name.ToString(), GetParam().canonical);
  EXPECT_EQ(DeviceName::Parse(name.ToString()), name);
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, DeviceNameForms,
    ::testing::Values(
        Case{"", ""}, Case{"/", ""}, Case{"//", ""},
        Case{"/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"},
        Case{"/job:worker", "/job:worker"}, Case{"/replica:3", "/replica:3"}, Case{"/task:12", "/task:12"},
        Case{"/device:GPU:2", "/device:GPU:2"}, Case{"/device:GPU", "/device:GPU:*"},
        Case{"/device:GPU:*", "/device:GPU:*"}, Case{"/device:*:1", "/device:*:1"}, Case{"/device:*", ""},
        Case{"/device:*:*", ""}, Case{"/device:My_Dev2:1", "/device:MY_DEV2:1"}, Case{"/device:gpu:1", "/device:GPU:1"},
        Case{"/cpu:0", "/device:CPU:0"}, Case{"/CPU:0", "/device:CPU:0"}, Case{"/gpu:0", "/device:GPU:0"},
        Case{"/GPU:7", "/device:GPU:7"}, Case{"/gpu", "/device:GPU:*"}, Case{"/cpu:*", "/device:CPU:*"},
        Case{"CPU:0", "/device:CPU:0"}, Case{"GPU:1", "/device:GPU:1"}, Case{"test:0", "/device:TEST:0"},
        Case{"job:worker/task:0/cpu:0/", "/job:worker/task:0/device:CPU:0"},
        Case{"/job:worker//task:0", "/job:worker/task:0"}, Case{"/task:1/job:ps", "/job:ps/task:1"},
        Case{"/device:CPU:0/job:ps", "/job:ps/device:CPU:0"}, Case{"/job:*/replica:*/task:*", ""},
        Case{"/job:w_1/task:0", "/job:w_1/task:0"}, Case{"/job:*/task:2/device:CPU:*", "/task:2/device:CPU:*"},
        Case{"/task:2147483647", "/task:2147483647"},
        Case{"/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"}));

TEST(DeviceName, AShortTypeHasToBeAdded) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { DeviceName::Parse("/tpu:0"); }),
              AllOf(HasSubstr("part 'tpu:0'"), HasSubstr("known: job, replica, task, device, CPU")));
  AddShortDeviceType("Tpu");
  EXPECT_EQ(DeviceName::Parse("/tpu:0").ToString(), "/device:TPU:0");
}

class DeviceNameErrors : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceNameErrors, QuotesTextAndPart) {
  const std::string message = MessageOf<InvalidArgumentError>([] { DeviceName::Parse(GetParam().text); });
  EXPECT_THAT(message, HasSubstr(StrCat("'", GetParam().text, "'")));
  EXPECT_THAT(message, HasSubstr(StrCat("part '", GetParam().canonical, "'")));
}

// Here the second is the part that does not fit.
INSTANTIATE_TEST_SUITE_P(
    Grammar, DeviceNameErrors,
    ::testing::Values(Case{"/job:1worker", "job:1worker"}, Case{"/job:", "job:"}, Case{"/job", "job"},
                      Case{"/job:a-b", "job:a-b"}, Case{"/job:worker:0", "job:worker:0"}, Case{"/task:x", "task:x"},
                      Case{"/task:-1", "task:-1"}, Case{"/task:+1", "task:+1"}, Case{"/task:", "task:"},
                      Case{"/task:1x", "task:1x"}, Case{"/task:2147483648", "task:2147483648"},
                      Case{"/replica:1.5", "replica:1.5"}, Case{"/device:", "device:"}, Case{"/device::0", "device::0"},
                      Case{"/device:0", "device:0"}, Case{"/device:CPU:", "device:CPU:"},
                      Case{"/device:CPU:a", "device:CPU:a"}, Case{"/device:CPU:0:1", "device:CPU:0:1"},
                      Case{"/cpu:x", "cpu:x"}, Case{"/machine:3", "machine:3"}, Case{"worker", "worker"},
                      Case{"/Job:worker", "Job:worker"}, Case{"/job:a/job:b", "job:b"},
                      Case{"/task:0/task:0", "task:0"}, Case{"/cpu:0/device:GPU:0", "device:GPU:0"},
                      Case{" /cpu:0", " "}, Case{"/cpu:0 ", "cpu:0 "}));

TEST(DeviceName, Fields) {
  const DeviceName name = DeviceName::Parse("/job:ps/replica:1/task:2/device:GPU:3");
  EXPECT_EQ(name.job, "ps");
  EXPECT_EQ(name.replica, 1);
  EXPECT_EQ(name.task, 2);
  EXPECT_EQ(name.type, "GPU");
  EXPECT_EQ(name.id, 3);
  EXPECT_TRUE(name.IsFull());
  EXPECT_FALSE(name.IsEmpty());
  EXPECT_EQ(name.Task().ToString(), "/job:ps/replica:1/task:2");
  EXPECT_TRUE(DeviceName().IsEmpty());
  EXPECT_FALSE(DeviceName::Parse("/job:ps/replica:1/task:2/device:GPU").IsFull());
}

TEST(DeviceName, InnerWinsFieldByField) {
  EXPECT_EQ(MergeDevices("/job:ps/task:1", "/cpu:0"), "/job:ps/task:1/device:CPU:0");
  EXPECT_EQ(MergeDevices("/job:ps/task:1/cpu:0", "/job:worker/gpu:2"), "/job:worker/task:1/device:GPU:2");
  EXPECT_EQ(MergeDevices("/device:GPU:3", "/device:CPU"), "/device:CPU:3");
  EXPECT_EQ(MergeDevices("", "/gpu:0"), "/device:GPU:0");
  EXPECT_EQ(MergeDevices("/gpu:0", ""), "/device:GPU:0");
  const DeviceName base = DeviceName::Parse("/job:worker/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(DeviceName::Parse("/job:ps").CompletedFrom(base).ToString(), "/job:ps/replica:0/task:1/device:CPU:0");
}

TEST(DeviceName, MatchesWhatIsSet) {
  const DeviceName full = DeviceName::Parse("/job:worker/replica:0/task:1/device:CPU:0");
  for (const char* spec :
       {"", "/job:worker", "/task:1", "/device:CPU:*", "/job:worker/replica:0/task:1/device:CPU:0"}) {
    EXPECT_TRUE(DeviceName::Parse(spec).Matches(full)) << spec;
  }
  for (const char* spec : {"/job:ps", "/replica:1", "/task:0", "/device:GPU:*", "/device:CPU:1"}) {
    EXPECT_FALSE(DeviceName::Parse(spec).Matches(full)) << spec;
  }
  EXPECT_FALSE(full.Matches(DeviceName::Parse("/job:worker")));
}

}  // namespace
}  // namespace cohort
