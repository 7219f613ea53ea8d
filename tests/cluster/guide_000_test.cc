// Runs the commands of guide 000 as they are typed there, each in the network of its host and in a folder of its own.
// In the shell, `python` is a function that starts our program; only variables of the environment are added. Further
// runs have flags that make them short, so that they can end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/example_output.h"
#include "tests/cluster/guide_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kHost42[] = "192.168.100.42", kHost253[] = "192.168.100.253";

// The guide's three commands.
constexpr char kTypePs[] =
    "CUDA_VISIBLE_DEVICES='' python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=ps --task_index=0";
constexpr char kTypeWorker0[] =
    "CUDA_VISIBLE_DEVICES=0 python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=worker --task_index=0";
constexpr char kTypeWorker1[] =
    "CUDA_VISIBLE_DEVICES=0 python distribute.py --ps_hosts=192.168.100.42:2222 "
    "--worker_hosts=192.168.100.42:2224,192.168.100.253:2225 --job_name=worker --task_index=1";

// What the README's reader types before the guide's commands.
constexpr char kPythonOf000[] = R"(python() { shift; build/release/bin/linear_regression "$@"; })";

class Guide000Test : public GuideTest {
 protected:
  Guide000Test() : GuideTest({kHost42, kHost253}) {}

  LaunchedProgram& Distribute(const std::string& host, const std::string& command, const Words& variables,
                              const std::string& flags = "") {
    return Type(
        host,
        PythonIs(kPythonOf000, "build/release/bin/linear_regression", LINEAR_REGRESSION_PROGRAM) + command + flags,
        variables);
  }
};

// The guide's run takes a million steps, so it is watched until both workers have printed lines.
TEST_F(Guide000Test, TheCommandsAsTyped) {
  Distribute(kHost42, kTypePs, insecure_);
  auto& chief = Distribute(kHost42, kTypeWorker0, insecure_);
  auto& worker = Distribute(kHost253, kTypeWorker1, insecure_);
  for (LaunchedProgram* program : {&chief, &worker}) {
    ASSERT_TRUE(program->WaitForText("step: ", 2)) << Output();
  }
  Interrupt();
  for (LaunchedProgram* program : {&chief, &worker}) {
    Words lines = Lines(program->out());
    ASSERT_THAT(lines.back(), MatchesRegex("worker [01]: [0-9]+ steps in .* steps/s"));
    lines.pop_back();
    EXPECT_THAT(lines, Each(MatchesRegex("step: [0-9]+000, weight: -?[0-9]+\\.[0-9]{6}, biase: -?[0-9]+\\.[0-9]{6}, "
                                         "loss: [0-9]+\\.[0-9]{6}")));
  }
  EXPECT_TRUE(std::filesystem::is_directory(File(kHost42) + "/checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(File(kHost253) + "/checkpoint"));  // only the chief writes
}

TEST(GuideReadmeTest, ShowsTheCommandsThatAreTested) {
  const std::string text = FileText(std::string(GUIDES_FOLDER) + "/000_parameter_servers/README.md");
  for (const char* typed : {kTypePs, kTypeWorker0, kTypeWorker1}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + typed + "\n"));
  }
  EXPECT_THAT(text, HasSubstr(std::string("\n") + kPythonOf000 + "\n"));
  EXPECT_THAT(text, HasSubstr("export COHORT_ALLOW_INSECURE=1"));
}

// The same commands with a larger learning rate and fewer steps.
TEST_F(Guide000Test, TrainingFindsWeight2AndBias10) {
  const std::string flags = " --learning_rate=0.01 --steps_to_validate=50 --max_steps=3000";
  auto& ps = Distribute(kHost42, kTypePs, insecure_, flags);
  auto& worker = Distribute(kHost253, kTypeWorker1, insecure_, flags);
  ASSERT_TRUE(worker.WaitForText("Waiting for model to be ready")) << Output();  // otherwise it may start too late
  auto& chief = Distribute(kHost42, kTypeWorker0, insecure_, flags);
  for (LaunchedProgram* program : {&ps, &chief, &worker}) EXPECT_EQ(program->Wait(), 0) << Output();
  std::vector<StepLine> lines = StepLines(chief.out());
  const std::vector<StepLine> others = StepLines(worker.out());
  lines.insert(lines.end(), others.begin(), others.end());
  ASSERT_GE(lines.size(), 2u) << Output();
  const auto by_step = [](const StepLine& a, const StepLine& b) { return a.step < b.step; };
  const StepLine first = *std::min_element(lines.begin(), lines.end(), by_step);
  const StepLine last = *std::max_element(lines.begin(), lines.end(), by_step);
  EXPECT_GT(std::abs(first.biase - 10), 0.5f);  // 50 to 100 steps of 0.01 leave a third of the distance or more
  EXPECT_NEAR(last.weight, 2, 0.2);
  EXPECT_NEAR(last.biase, 10, 0.2);
}

TEST_F(Guide000Test, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  auto& ps = Distribute(kHost42, kTypePs, {});
  EXPECT_EQ(ps.Wait(), 1);
  EXPECT_THAT(ps.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("got 192.168.100.42:2222"),
                              HasSubstr("COHORT_ALLOW_INSECURE=1 before its command, on this host, 192.168.100.42,"),
                              HasSubstr("~/.config/cohort/token"), HasSubstr("cohort certificates --help")));
}

TEST(Guide000FlagsTest, TheDefaultsAreTheGuides) {
  LaunchedProgram help({LINEAR_REGRESSION_PROGRAM, "--help"});
  ASSERT_EQ(help.Wait(), 0);
  for (const char* flag : {"--learning_rate FLOAT=3e-05", "--steps_to_validate INT=1000", "--max_steps INT=1000000",
                           "--logdir TEXT=./checkpoint/", "--save_model_secs FLOAT=60", "--ps_hosts TEXT ",
                           "--worker_hosts TEXT ", "--job_name TEXT ", "--task_index INT "}) {
    EXPECT_THAT(help.out(), HasSubstr(flag));
  }
}

// Each host has made a token of its own.
TEST_F(Guide000Test, HostsWithDifferentTokensAreToldToShareOne) {
  const Words variables{"COHORT_ALLOW_INSECURE=1"};
  auto& ps = Distribute(kHost42, kTypePs, variables);
  ASSERT_TRUE(ps.WaitForText("Started server with target: grpc://192.168.100.42:2222")) << Output();
  auto& refused = Distribute(kHost253, kTypeWorker1, variables);
  EXPECT_EQ(refused.Wait(), 1) << Output();
  EXPECT_THAT(refused.err(), AllOf(HasSubstr("PermissionDenied"), HasSubstr("192.168.100.42:2222"),
                                   HasSubstr("another job token"), HasSubstr("~/.config/cohort/token")));
  // What the message asks for is enough.
  const std::string token = "/.config/cohort/token";
  std::filesystem::copy_file(File(kHost42) + token, File(kHost253) + token,
                             std::filesystem::copy_options::overwrite_existing);
  auto& taken = Distribute(kHost253, kTypeWorker1, variables);
  EXPECT_TRUE(taken.WaitForText("Waiting for model to be ready")) << Output();
}

}  // namespace
}  // namespace cohort::testing
