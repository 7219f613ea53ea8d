#include "tools/cohort/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "cohort/cluster/launcher_link.h"

namespace cohort::tools {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr HealthCheck::Seconds kLimit{0.5};  // so it asks every 0.1 s

int MakeSocket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

bool ConnectTo(int fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
}

std::optional<size_t> TheTask(pid_t) { return 0; }

// Goes through the updates of `time`.
void UpdateFor(HealthCheck& health, HealthCheck::Seconds time) {
  const auto end = HealthCheck::Clock::now() + std::chrono::duration_cast<HealthCheck::Clock::duration>(time);
  health.Update(TheTask);  // accepts
  while (HealthCheck::Clock::now() < end) {
    std::this_thread::sleep_until(std::min(health.next_update(), end));
    health.Update(TheTask);
  }
}

class HealthCheckTest : public ::testing::Test {
 protected:
  // Starts a process that connects and then calls `stop`, which must not return.
  pid_t StartTask(void (*stop)()) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (!ConnectTo(MakeSocket(), health_.name())) _exit(1);
    stop();
    _exit(2);
  }
  static void End(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  HealthCheck health_{kLimit};
};

TEST_F(HealthCheckTest, ASilentTaskIsNamedOnceBeforeItsTimeIsOver) {
  const pid_t pid = StartTask([] { raise(SIGSTOP); });
  ASSERT_EQ(waitpid(pid, nullptr, WUNTRACED), pid);
  std::vector<HealthCheck::Report> news;
  while (news.empty()) {
    UpdateFor(health_, kLimit / 5);
    news = health_.TakeNews();
  }
  EXPECT_THAT(news.at(0).what, AllOf(HasSubstr("is stopped (state T)"), HasSubstr("has not answered the launcher")));
  UpdateFor(health_, 2 * kLimit);
  EXPECT_THAT(health_.TakeNews(), IsEmpty());
  EXPECT_EQ(health_.SilentFor(kLimit).size(), 1u);
  End(pid);
}

TEST_F(HealthCheckTest, ATaskThatAnswersAgainIsNamed) {
  const int task = MakeSocket();
  ASSERT_TRUE(ConnectTo(task, health_.name()));
  UpdateFor(health_, 2 * kLimit);
  ASSERT_EQ(health_.TakeNews().size(), 1u);
  char question = 0;
  ASSERT_EQ(recv(task, &question, 1, 0), 1);
  EXPECT_EQ(question, kHealthQuestion);
  ASSERT_EQ(send(task, &kHealthAnswer, 1, 0), 1);
  health_.Update(TheTask);
  EXPECT_THAT(health_.TakeNews(),
              ::testing::ElementsAre(Field(&HealthCheck::Report::what, HasSubstr("answers again"))));
  EXPECT_THAT(health_.SilentFor(kLimit), IsEmpty());
  close(task);
}

// A breakpoint is no fault. When the debugger leaves the process, the time begins.
TEST_F(HealthCheckTest, ATaskInADebuggerIsNotJudged) {
  const pid_t pid = StartTask([] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
  });
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSTOPPED(status)) << "a tracer sees each stop";
  UpdateFor(health_, 3 * kLimit);
  EXPECT_THAT(health_.SilentFor(kLimit), IsEmpty());
  EXPECT_THAT(health_.TakeNews(), IsEmpty());
  ASSERT_EQ(ptrace(PTRACE_DETACH, pid, nullptr, SIGSTOP), 0);
  EXPECT_THAT(health_.SilentFor(kLimit), IsEmpty());
  UpdateFor(health_, 2 * kLimit);
  EXPECT_EQ(health_.SilentFor(kLimit).size(), 1u);
  End(pid);
}

TEST_F(HealthCheckTest, WhatATaskHasSaidBeforeItsEndIsHeard) {
  const int task = MakeSocket();
  ASSERT_TRUE(ConnectTo(task, health_.name()));
  ASSERT_EQ(send(task, &kTrainingDone, 1, 0), 1);
  close(task);
  health_.Update(TheTask);
  EXPECT_TRUE(health_.training_done(0));
}

// A listener that cannot accept stays readable. A launcher that waited for it would use a whole core.
TEST_F(HealthCheckTest, WithoutDescriptorsConnectionsWait) {
  const int task = MakeSocket();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;  // what is open stays open
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_TRUE(ConnectTo(task, health_.name()));
  health_.Update(TheTask);
  std::vector<pollfd> entries;
  health_.AddPollEntries(&entries);
  EXPECT_THAT(entries, IsEmpty());
  EXPECT_LT(health_.next_update(), HealthCheck::Clock::time_point::max()) << "it tries again";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  UpdateFor(health_, HealthCheck::Seconds(1.5));
  health_.AddPollEntries(&entries);
  EXPECT_EQ(entries.size(), 2u) << "the listener and the task";
  close(task);
}

}  // namespace
}  // namespace cohort::tools
