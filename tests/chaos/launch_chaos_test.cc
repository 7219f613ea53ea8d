// `cohort launch` runs a real training program, and the test kills its tasks from outside.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/cluster/port_reservation.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::string FileText(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class LaunchChaosTest : public ::testing::Test {
 protected:
  void Launch(const std::vector<std::string>& flags, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"/usr/bin/env", "COHORT_TOKEN=" + token_, COHORT_PROGRAM, "launch", "--ps=2",
                                     "--workers=2"};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"--", LINEAR_REGRESSION, "--logdir=" + folder_.path(), "--steps_to_validate=100"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    program_ = std::make_unique<LaunchedProgram>(command);
  }

  // Returns the processes of this launch, which it finds by the token in their environment. If `job` is given, returns
  // only those of this task.
  std::vector<pid_t> Processes(const std::string& job = "", int index = 0) const {
    std::vector<pid_t> found;
    const std::string task = StrCat("\"task\":{\"type\":\"", job, "\",\"index\":", index, "}");
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
      if (pid <= 0) continue;
      const std::string environment = FileText(entry.path() / "environ");
      if (environment.find(token_) == std::string::npos) continue;
      if (job.empty() || environment.find(task) != std::string::npos) found.push_back(pid);
    }
    return found;
  }
  // Returns the launcher's own processes.
  std::vector<pid_t> Launchers() const {
    std::vector<pid_t> launchers = Processes();
    for (const char* job : {"ps", "worker"}) {
      for (int index = 0; index < 2; ++index) std::erase(launchers, Processes(job, index).at(0));
    }
    return launchers;
  }
  // Returns the task's process.
  pid_t SignalTask(const std::string& job, int index, int signal) {
    const std::vector<pid_t> pids = Processes(job, index);
    EXPECT_EQ(pids.size(), 1u) << program_->err();
    if (pids.size() == 1) kill(pids[0], signal);
    return pids.empty() ? -1 : pids[0];
  }
  // Returns the port of the task.
  int PortOf(const std::string& job, int index) const {
    const std::string environment = FileText(StrCat("/proc/", Processes(job, index).at(0), "/environ"));
    std::smatch addresses, port;
    std::regex_search(environment, addresses, std::regex(StrCat("\"", job, "\":\\[([^\\]]*)\\]")));
    std::string rest = addresses[1];
    for (int i = 0; std::regex_search(rest, port, std::regex(":([0-9]+)\"")); ++i, rest = port.suffix()) {
      if (i == index) return std::stoi(port[1]);
    }
    return -1;
  }
  void KillTask(const std::string& job, int index) { SignalTask(job, index, SIGKILL); }
  // Stops the task as soon as its process is there, as a rule before it has a server.
  pid_t StopAtItsStart(const std::string& job, int index) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
    while (Processes(job, index).empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return SignalTask(job, index, SIGSTOP);
  }

  const TempFolder folder_;
  const std::string token_ = StrCat("launch-chaos-", getpid(), "-", std::random_device{}());
  std::unique_ptr<LaunchedProgram> program_;
};

class LaunchKillTest : public LaunchChaosTest, public ::testing::WithParamInterface<std::pair<const char*, int>> {};

TEST_P(LaunchKillTest, TheFirstFailureIsNamedAndEverythingEnds) {
  const auto [job, index] = GetParam();
  Launch({"--grace=3"}, {});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  ASSERT_EQ(Processes().size(), 6u) << "four tasks and the launcher's two";
  KillTask(job, index);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex(StrCat("cohort launch: ", job, "/", index,
                                                    " \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\)")));
  EXPECT_TRUE(Processes().empty());
  if (std::string(job) == "ps") {  // each worker says why it ended
    for (int w = 0; w < 2; ++w) {
      EXPECT_THAT(program_->err(),
                  ContainsRegex(StrCat("\\[worker/", w, "\\] .*Unavailable.*/job:ps/replica:0/task:", index)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, LaunchKillTest,
                         ::testing::Values(std::pair{"ps", 1}, std::pair{"worker", 0}, std::pair{"worker", 1}),
                         [](const auto& info) { return StrCat(info.param.first, info.param.second); });

TEST_F(LaunchChaosTest, AWorkerIsStartedAgainAndTrainingGoesOn) {
  Launch({"--restart=1"}, {"--max_steps=6000"});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  KillTask("worker", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), AllOf(HasSubstr("worker/1"), HasSubstr("was killed by signal 9")));
  EXPECT_THAT(program_->out(), AllOf(HasSubstr("[worker/0] worker 0: "), HasSubstr("[worker/1] worker 1: ")));
  EXPECT_TRUE(Processes().empty());
}

// The variables of the killed server are lost. The workers fail, are started again, and restore the checkpoint.
TEST_F(LaunchChaosTest, AParameterServerIsStartedAgainAndTrainingGoesOnFromTheCheckpoint) {
  Launch({"--restart=2"}, {"--max_steps=6000", "--save_model_secs=0.2"});
  for (int lines = 1; LatestCheckpoint(folder_.path()).empty(); ++lines) {
    ASSERT_TRUE(program_->WaitForText("step: ", lines)) << program_->err();
  }
  KillTask("ps", 0);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              AllOf(HasSubstr("ps/0"), HasSubstr("was killed by signal 9"), HasSubstr("Restoring parameters from")));
  EXPECT_TRUE(Processes().empty());
}

// Each task finishes its step. The chief then saves, and all leave with 0.
TEST_F(LaunchChaosTest, SigtermSavesAndEndsWithZero) {
  Launch({}, {"--max_steps=100000000", "--save_model_secs=600"});
  ASSERT_TRUE(program_->WaitForText("step: ", 10)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex("\\[worker/0\\] .*Got SIGTERM: the training stops after its step"));
  const std::string saved = LatestCheckpoint(folder_.path());
  ASSERT_NE(saved, "") << program_->err();
  EXPECT_GT(std::stoll(saved.substr(saved.rfind('-') + 1)), 0) << saved;
  EXPECT_TRUE(Processes().empty());
}

// When the chief has left, no token comes for the step of the other worker. Nobody is killed.
TEST_F(LaunchChaosTest, SigtermEndsSynchronousTrainingWithZero) {
  Launch({}, {"--sync", "--max_steps=100000000", "--save_model_secs=600"});
  ASSERT_TRUE(program_->WaitForText("step: ", 4)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ::testing::Not(HasSubstr("SIGKILL")));
  EXPECT_THAT(program_->out(), AllOf(HasSubstr("[worker/0] worker 0: "), HasSubstr("[worker/1] worker 1: ")));
  const std::string saved = LatestCheckpoint(folder_.path());
  ASSERT_NE(saved, "") << program_->err();
  EXPECT_GT(std::stoll(saved.substr(saved.rfind('-') + 1)), 0) << saved;
  EXPECT_TRUE(Processes().empty());
}

// The workers end because the ps ends. Only the ps uses up its restarts.
TEST_F(LaunchChaosTest, AnEndThatFollowsFromAnotherDoesNotCount) {
  Launch({"--restart=2"}, {"--max_steps=100000000", "--save_model_secs=0.2"});
  for (int kills = 1; kills <= 2; ++kills) {
    const std::string restarted = StrCat("(", kills, " of 2)");
    ASSERT_TRUE(program_->WaitForText("step: ", 3 * kills)) << program_->err();
    KillTask("ps", 0);
    ASSERT_TRUE(program_->WaitForText(restarted)) << program_->err();
  }
  ASSERT_TRUE(program_->WaitForText("this follows from the end of another task, and does not count"))
      << program_->err();
  ASSERT_TRUE(program_->WaitForText("step: ", 12)) << program_->err();
  program_->Signal(SIGTERM);
  program_->Wait();
  EXPECT_THAT(program_->err(), ::testing::Not(ContainsRegex("worker/[01] [^\n]* \\([12] of 2\\)")));
  EXPECT_TRUE(Processes().empty());
}

// It would stay stopped for ever, and the steps would wait for it.
TEST_F(LaunchChaosTest, AStoppedParameterServerIsNamedAndReplaced) {
  Launch({"--restart=5", "--unhealthy_after=2"}, {"--max_steps=20000", "--save_model_secs=0.2"});
  for (int lines = 1; LatestCheckpoint(folder_.path()).empty(); ++lines) {
    ASSERT_TRUE(program_->WaitForText("step: ", lines)) << program_->err();
  }
  const pid_t pid = SignalTask("ps", 0, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(
      program_->err(),
      AllOf(ContainsRegex(StrCat("cohort launch: ps/0 \\(pid ", pid, "\\) is stopped \\(state T\\) and has not ",
                                 "answered the launcher for [0-9.]+ s; killing it")),
            ContainsRegex(StrCat("ps/0 \\(pid ", pid, "\\) was killed by signal 9 [^\n]*starting it again")),
            HasSubstr("Restoring parameters from")));
  EXPECT_TRUE(Processes().empty());
}

TEST_F(LaunchChaosTest, WithoutRestartsAStoppedTaskEndsTheLaunch) {
  Launch({"--unhealthy_after=2", "--grace=3"}, {"--max_steps=100000000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  SignalTask("worker", 1, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 128 + SIGKILL) << program_->err();
  EXPECT_THAT(program_->err(), ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\)"));
  EXPECT_TRUE(Processes().empty());
}

// The chief says that training is done, and ends. The stopped worker then has the time of --grace.
TEST_F(LaunchChaosTest, AStoppedWorkerDoesNotOutliveTheTraining) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=20000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  SignalTask("worker", 1, SIGSTOP);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->out(), HasSubstr("[worker/0] worker 0: "));
  EXPECT_THAT(program_->err(),
              ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\) and has not answered the "
                            "launcher for [0-9.]+ s, and training is done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// Then it has not called the launcher, but the launcher sees that it is stopped.
TEST_F(LaunchChaosTest, AWorkerThatIsStoppedAtItsStartDoesNotOutliveTheTraining) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=5000"});
  StopAtItsStart("worker", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              ContainsRegex("worker/1 \\(pid [0-9]+\\) is stopped \\(state T\\)[^\n]*, and training is "
                            "done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// Nobody could train without it.
TEST_F(LaunchChaosTest, AParameterServerThatIsStoppedAtItsStartIsReplaced) {
  Launch({"--restart=1", "--unhealthy_after=5"}, {"--max_steps=2000"});
  const pid_t pid = StopAtItsStart("ps", 1);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(),
              AllOf(ContainsRegex(StrCat("cohort launch: ps/1 \\(pid ", pid, "\\) is stopped \\(state T\\)")),
                    ContainsRegex(StrCat("ps/1 \\(pid ", pid, "\\) was killed by signal 9 [^\n]*starting it again"))));
  EXPECT_TRUE(Processes().empty());
}

// The launcher is stopped while the chief says that training is done and ends. It reads that later, and does not wait
// for the stopped worker.
TEST_F(LaunchChaosTest, AStoppedLauncherHearsThatTrainingIsDone) {
  Launch({"--unhealthy_after=100000", "--grace=2"}, {"--max_steps=20000"});
  ASSERT_TRUE(program_->WaitForText("[worker/1] step: ")) << program_->err();
  const pid_t chief = Processes("worker", 0).at(0);
  const std::vector<pid_t> launchers = Launchers();
  ASSERT_EQ(launchers.size(), 2u);
  SignalTask("worker", 1, SIGSTOP);
  for (const pid_t pid : launchers) kill(pid, SIGSTOP);
  EXPECT_TRUE(WatchedProcess(chief).WaitForEnd());
  for (const pid_t pid : launchers) kill(pid, SIGCONT);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), HasSubstr("and training is done; sending SIGTERM"));
  EXPECT_TRUE(Processes().empty());
}

// A launcher that was stopped itself, for example by Ctrl-Z, has not heard answers, but the tasks have given them.
TEST_F(LaunchChaosTest, AStoppedLauncherDoesNotBlameItsTasks) {
  Launch({"--unhealthy_after=4"}, {"--max_steps=100000000"});
  ASSERT_TRUE(program_->WaitForText("step: ", 3)) << program_->err();
  const std::vector<pid_t> launchers = Launchers();
  ASSERT_EQ(launchers.size(), 2u);
  for (const pid_t pid : launchers) kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(10));
  for (const pid_t pid : launchers) kill(pid, SIGCONT);
  ASSERT_TRUE(program_->WaitForText("step: ", 30)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ::testing::Not(HasSubstr("has not answered")));
}

// A process of another user, or of this one, that tries to listen on a port. If it can, it passes on what comes to the
// port `relay_to`, and back. It runs until the object is destroyed.
class Thief {
 public:
  Thief(uid_t user, int port, int relay_to) {
    seen_ = static_cast<Seen*>(mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (seen_) Seen();
    pid_ = fork();
    if (pid_ == 0) Run(user, port, relay_to);
  }
  ~Thief() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(seen_, sizeof(Seen));
  }
  int tries() const { return seen_->tries; }
  bool listens() const { return seen_->listens; }
  int relayed() const { return seen_->relayed; }
  bool failed() const { return seen_->failed; }

 private:
  struct Seen {
    std::atomic<int> tries{0};
    std::atomic<bool> listens{false};
    std::atomic<int> relayed{0};
    std::atomic<bool> failed{false};  // it could not become another user
  };
  static sockaddr_in At(uint32_t host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(host);
    return address;
  }
  static int ListenOn(uint32_t host, int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    const sockaddr_in address = At(host, port);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && listen(fd, 64) == 0) return fd;
    close(fd);
    return -1;
  }
  // Other threads hold locks of the parent: only calls of the system from here on.
  [[noreturn]] void Run(uid_t user, int port, int relay_to) {
    if (user != geteuid() &&
        (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)) {
      seen_->failed = true;
      _exit(1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int listener = -1;
    while (listener < 0) {
      for (const uint32_t host : {INADDR_LOOPBACK, INADDR_ANY}) {
        if (listener < 0) listener = ListenOn(host, port);
      }
      ++seen_->tries;
      usleep(500);  // sets the rate of the tries; it waits for nothing
    }
    seen_->listens = true;
    for (;;) Relay(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), relay_to);
  }
  void Relay(int from, int relay_to) {
    const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = At(INADDR_LOOPBACK, relay_to);
    if (connect(to, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      pollfd sides[2] = {{from, POLLIN, 0}, {to, POLLIN, 0}};
      bool answered = false;
      for (bool open = true; open && poll(sides, 2, 2000) > 0;) {
        for (int i = 0; i < 2; ++i) {
          if (sides[i].revents == 0) continue;
          char bytes[4096];
          const ssize_t got = read(sides[i].fd, bytes, sizeof(bytes));
          open = got > 0 && send(sides[1 - i].fd, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) == got;
          answered = answered || (open && i == 1);
          if (!open) break;
        }
      }
      if (answered) ++seen_->relayed;
    }
    close(from);
    close(to);
  }

  Seen* seen_;
  pid_t pid_ = -1;
};

bool WaitUntil(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // what another process does cannot wake this one
  }
  return condition();
}

// The thief wants the port from before the kill until the ps is there again, and would be the ps to the others.
TEST_F(LaunchChaosTest, AnotherUserCannotTakeThePortOfAKilledParameterServer) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  Launch({"--restart=5"}, {"--max_steps=100000000", "--save_model_secs=0.2"});
  ASSERT_TRUE(program_->WaitForText("step: ", 10)) << program_->err();
  {
    const Thief thief(kNobody, PortOf("ps", 0), PortOf("worker", 1));
    ASSERT_TRUE(WaitUntil([&] { return thief.tries() > 10; }));
    KillTask("ps", 0);
    ASSERT_TRUE(program_->WaitForText("starting it again in")) << program_->err();
    const int tries = thief.tries();
    ASSERT_TRUE(program_->WaitForText("step: ", 30)) << program_->err();
    EXPECT_GT(thief.tries(), tries);
    EXPECT_FALSE(thief.listens());
    EXPECT_FALSE(thief.failed());
  }
  {  // the test can tell
    const Thief thief(kNobody, PickUnusedPort(), PortOf("worker", 1));
    EXPECT_TRUE(WaitUntil([&] { return thief.listens(); }));
  }
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), ::testing::Not(HasSubstr("in use")));
  EXPECT_TRUE(Processes().empty());
}

// This thief is of the same user, so it gets the port. It passes on the handshakes of the others to a worker, which is
// not the task that they want. Nobody takes it for the ps, and training goes on when it has gone.
TEST_F(LaunchChaosTest, ARelayToAnotherTaskIsRefused) {
  Launch({"--restart=50"}, {"--max_steps=100000000", "--save_model_secs=0.2"});
  ASSERT_TRUE(program_->WaitForText("step: ", 10)) << program_->err();
  const int port = PortOf("worker", 1);
  {
    const Thief thief(geteuid(), PortOf("ps", 0), port);
    ASSERT_TRUE(WaitUntil([&] { return thief.listens(); }));
    KillTask("ps", 0);
    EXPECT_TRUE(WaitUntil([&] { return thief.relayed() >= 3; })) << program_->err();
  }
  const int steps = static_cast<int>(NumbersAfter(program_->out(), "step: ").size());
  ASSERT_TRUE(program_->WaitForText("step: ", steps + 20)) << program_->err();
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->err();
  EXPECT_THAT(program_->err(), HasSubstr(StrCat("expected /job:ps/replica:0/task:0 at 127.0.0.1:", port,
                                                "; there is /job:worker/replica:0/task:1")));
  EXPECT_TRUE(Processes().empty());
}

}  // namespace
}  // namespace cohort::testing
