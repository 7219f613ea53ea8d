#include "cohort/train/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A command line that TakeTaskFlags may change.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);
    argc_ = static_cast<int>(words_.size());
  }
  TaskFlags Take() { return TakeTaskFlags(&argc_, argv_.data()); }
  std::vector<std::string> left() const { return {argv_.begin(), argv_.begin() + argc_}; }

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
  int argc_;
};

TEST(TaskFlagsTest, TakesItsOwnAndLeavesTheOthers) {
  Words words({"program",
               "--ps_hosts=a:1,b:2",
               "--epochs",
               "3",
               "--worker-hosts",
               "c:3",
               "--job_name=worker",
               "--task-index=1",
               "--allow_insecure",
               "--allow_path=/a",
               "--allow-path",
               "/b",
               "--tls_ca=/ca",
               "--tls-key",
               "/key",
               "--tls_certificate=/pem",
               "--allow_insecure_collectives",
               "--metrics_port=9101",
               "data",
               "--",
               "--bind=x"});
  const TaskFlags flags = words.Take();
  EXPECT_EQ(flags.ps_hosts, "a:1,b:2");
  EXPECT_EQ(flags.worker_hosts, "c:3");
  EXPECT_EQ(flags.job_name, "worker");
  EXPECT_EQ(flags.task_index, 1);
  EXPECT_TRUE(flags.allow_insecure);
  EXPECT_THAT(flags.allow_path, ElementsAre("/a", "/b"));
  EXPECT_EQ(flags.tls, (TlsOptions{"/ca", "/pem", "/key"}));
  EXPECT_TRUE(flags.allow_insecure_collectives);
  EXPECT_EQ(flags.metrics_port, 9101);
  EXPECT_EQ(flags.bind, "");
  EXPECT_THAT(words.left(), ElementsAre("program", "--epochs", "3", "data", "--", "--bind=x"));
}

TEST(TaskFlagsTest, RefusesWhatItCannotRead) {
  const auto error_of = [](const std::string& word) {
    Words words({"program", word});
    return MessageOf<InvalidArgumentError>([&] { words.Take(); });
  };
  EXPECT_THAT(error_of("--task_index=one"), AllOf(HasSubstr("--task_index"), HasSubstr("'one'")));
  EXPECT_THAT(error_of("--task_index=-1"), HasSubstr("'-1'"));
  EXPECT_THAT(error_of("--ps_hosts"), AllOf(HasSubstr("--ps_hosts"), HasSubstr("got none")));
  EXPECT_THAT(error_of("--allow_insecure=maybe"), HasSubstr("'maybe'"));
  EXPECT_THAT(error_of("--metrics_port=65536"), AllOf(HasSubstr("--metrics_port"), HasSubstr("'65536'")));
}

TEST(TaskFlagsTest, AMisspeltFlagIsAnsweredWithTheNearestName) {
  const auto error_of = [](const std::string& word) {
    Words words({"program", word});
    return MessageOf<InvalidArgumentError>([&] { words.Take(); });
  };
  EXPECT_THAT(error_of("--task_idex=1"), HasSubstr("did you mean --task_index?"));
  EXPECT_THAT(error_of("--worker_host=a:1"), HasSubstr("did you mean --worker_hosts?"));
  Words own({"program", "--steps=3", "--hosts=x", "--batch_index=1"});
  own.Take();
  EXPECT_EQ(own.left().size(), 4u);
}

TEST(TaskTest, WithoutAClusterItIsAWorkerOnItsOwn) {
  const Task task = StartTask({});
  EXPECT_EQ(task.server, nullptr);
  EXPECT_EQ(task.target(), "");
  EXPECT_TRUE(task.is_chief());
  EXPECT_THROW(task.Serve(), FailedPreconditionError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { StartTask({.job_name = "ps"}); }), HasSubstr("--job_name=ps"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { StartTask({.ps_hosts = "a:1"}); }), HasSubstr("--worker_hosts"));
}

}  // namespace
}  // namespace cohort::train
