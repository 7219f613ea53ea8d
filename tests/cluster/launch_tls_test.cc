// `cohort launch --tls` and `cohort certificates` from outside: training over TLS on one host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using LaunchTlsTest = LaunchTest;

TEST_F(LaunchTlsTest, AClusterTrains) {
  LaunchedProgram program(
      Launch({"--ps=1", "--workers=2", "--tls"},
             {LINEAR_REGRESSION_PROGRAM, "--max_steps=200", "--steps_to_validate=50", "--logdir=" + File("logs")}));
  ASSERT_EQ(program.Wait(), 0) << program.out() << program.err();
  EXPECT_THAT(program.out(), HasSubstr("step: "));
  for (const char* task : {"ps/0", "worker/0", "worker/1"}) {
    EXPECT_THAT(program.err(), ContainsRegex("\\[" + std::string(task) + "\\] .*Started server .*, with TLS\n"));
  }
}

// The command that the launcher prints has all that it needs.
TEST_F(LaunchTlsTest, ThePrintedCommandLooksAtTheTasks) {
  LaunchedProgram program(Launch({"--ps=1", "--workers=1", "--tls"},
                                 {LINEAR_REGRESSION_PROGRAM, "--max_steps=100000000", "--logdir=" + File("logs")}));
  ASSERT_TRUE(program.WaitForText("step: ", 2)) << program.err();
  const std::string before = "look at the tasks: ";
  const std::string said = program.err();
  const size_t at = said.find(before);
  ASSERT_NE(at, std::string::npos) << said;
  std::string line = said.substr(at + before.size(), said.find('\n', at) - at - before.size());
  const std::string name = "cohort status";
  line.replace(line.find(name), name.size(), std::string(COHORT_PROGRAM) + " status");
  LaunchedProgram status({"/bin/sh", "-c", line});
  EXPECT_EQ(status.Wait(), 0) << line << status.out() << status.err();
  EXPECT_THAT(status.out(), HasSubstr("all 2 tasks are well"));
  program.Signal(SIGKILL);
  program.Wait();
}

// A task that is killed and started again has its files, too.
TEST_F(LaunchTlsTest, ARestartedTaskComesBack) {
  const std::string once = "; is worker 1 && [ ! -e " + File("died") + " ] && { touch " + File("died") +
                           "; sleep 1; exit 9; }; exec " + std::string(LINEAR_REGRESSION_PROGRAM) +
                           " --max_steps=20000 --steps_to_validate=10000 --logdir=" + File("logs");
  LaunchedProgram program(Shell({"--ps=1", "--workers=2", "--tls", "--restart=1"}, "true" + once));
  ASSERT_EQ(program.Wait(), 0) << program.out() << program.err();
  EXPECT_THAT(program.err(), ContainsRegex("worker/1.*exited with code 9"));
}

// The variables name files that only this user can read. The folder ends with the launch, also after kill -9.
TEST_F(LaunchTlsTest, TheFilesArePrivateAndEndWithTheLaunch) {
  const std::string script =
      "echo KEY=$COHORT_TLS_KEY; stat -c %a $COHORT_TLS_KEY $(dirname $COHORT_TLS_KEY); "
      "tr '\\0' ' ' < /proc/$$/cmdline; echo; exec sleep ";
  for (const bool killed : {false, true}) {
    LaunchedProgram program(Shell({"--workers=1", "--tls"}, script + (killed ? "600" : "0")));
    ASSERT_TRUE(program.WaitForText("KEY=")) << program.err();
    if (killed) {
      ASSERT_TRUE(program.WaitForText("sleep"));
      program.Signal(SIGKILL);
    }
    EXPECT_EQ(program.Wait(), killed ? 128 + SIGKILL : 0);
    EXPECT_THAT(program.out(), HasSubstr("600\n"));
    EXPECT_THAT(program.out(), HasSubstr("700\n"));
    EXPECT_THAT(program.out() + program.err(), Not(HasSubstr("PRIVATE")));
    const std::string out = program.out();
    const size_t at = out.find("KEY=") + 4;
    const std::filesystem::path key(out.substr(at, out.find('\n', at) - at));
    EXPECT_EQ(key.filename(), "worker-0.key");
    for (int i = 0; killed && i < 100 && std::filesystem::exists(key.parent_path()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the other half of the launcher removes it
    }
    EXPECT_FALSE(std::filesystem::exists(key.parent_path())) << key;
  }
}

TEST_F(LaunchTlsTest, WithoutTheFlagThereAreNoVariables) {
  LaunchedProgram program(Shell({"--workers=1"}, "echo \"<$COHORT_TLS_KEY>\""));
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_THAT(program.out(), HasSubstr("<>"));
}

class CertificatesTest : public LaunchTest {
 protected:
  LaunchedProgram Make(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {COHORT_PROGRAM, "certificates", "--out=" + File("tls")});
    return LaunchedProgram(flags);
  }
  bool Has(const std::string& file) const { return std::filesystem::exists(File("tls/" + file)); }
};

TEST_F(CertificatesTest, EachHostGetsTheFilesOfItsTasks) {
  auto program = Make({"--ps_hosts=10.0.0.1:2222", "--worker_hosts=10.0.0.1:2223,[::1]:2222"});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), AllOf(HasSubstr("10.0.0.1: /job:ps/task:0, /job:worker/task:0, clients\n"),
                                   HasSubstr("__1: /job:worker/task:1, clients\n"), HasSubstr("COHORT_TLS_FOLDER")));
  for (const char* file : {"ca.pem", "ca.key", "10.0.0.1/ca.pem", "10.0.0.1/ps-0.key", "10.0.0.1/worker-0.pem",
                           "10.0.0.1/client.key", "__1/worker-1.key", "client/client.pem", "client/client.key"}) {
    EXPECT_TRUE(Has(file)) << file;
  }
  EXPECT_FALSE(Has("__1/ps-0.key"));
  EXPECT_FALSE(Has("10.0.0.1/ca.key"));
  LaunchedProgram modes({"/usr/bin/find", File("tls"), "-name", "*.key", "-perm", "/077"});
  EXPECT_EQ(modes.Wait(), 0);
  EXPECT_THAT(modes.out(), IsEmpty());
}

TEST_F(CertificatesTest, ASecondRunUsesTheSameAuthority) {
  auto first = Make({R"(--cluster={"cluster": {"worker": ["a:1"]}})", "--job_id=mine"});
  ASSERT_EQ(first.Wait(), 0) << first.err();
  auto second = Make({R"(--cluster={"worker": ["a:1", "b:1"]})"});
  ASSERT_EQ(second.Wait(), 0) << second.err();
  EXPECT_THAT(second.out(), HasSubstr("job mine"));
  LaunchedProgram both({"/usr/bin/cmp", File("tls/a/ca.pem"), File("tls/b/ca.pem")});
  EXPECT_EQ(both.Wait(), 0) << both.out();
  auto other = Make({R"(--cluster={"worker": ["a:1"]})", "--job_id=other"});
  EXPECT_EQ(other.Wait(), 1);
  EXPECT_THAT(other.err(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("mine"), HasSubstr("other")));
  std::filesystem::remove(File("tls/ca.key"));
  auto without = Make({R"(--cluster={"worker": ["a:1"]})"});
  EXPECT_EQ(without.Wait(), 1);
  EXPECT_THAT(without.err(), HasSubstr("ca.key"));
}

TEST_F(CertificatesTest, AClusterIsNeeded) {
  LaunchedProgram program({"/usr/bin/env", "-u", "TF_CONFIG", COHORT_PROGRAM, "certificates", "--out=" + File("tls")});
  EXPECT_EQ(program.Wait(), 2);
  EXPECT_THAT(program.err(), HasSubstr("no cluster"));
  LaunchedProgram nowhere({COHORT_PROGRAM, "certificates", "--ps_hosts=a:1"});
  EXPECT_EQ(nowhere.Wait(), 2);
  EXPECT_THAT(nowhere.err(), HasSubstr("--out"));
}

}  // namespace
}  // namespace cohort::testing
