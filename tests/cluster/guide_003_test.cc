// Runs guide-003's program on the guide's two addresses, each in the network of its host, and types the guide's
// mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/cluster/example_output.h"
#include "tests/cluster/guide_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr char kParameterServer[] = "192.168.1.1", kWorker[] = "192.168.1.12";

// What the README shows for each host; the guide names the two flags, and shows no command.
constexpr char kTypedPs[] = "build/release/bin/cluster_matmul --job_name=ps";
constexpr char kTypedWorker[] = "build/release/bin/cluster_matmul --job_name=worker --task_index=0";

class Guide003Test : public GuideTest {
 protected:
  Guide003Test() : GuideTest({kParameterServer, kWorker}) {}

  LaunchedProgram& TypeCommand(const std::string& host, const std::string& typed, const std::string& flags = "") {
    return Type(
        host,
        Replaced(typed, "build/release/bin/cluster_matmul", std::string("exec ") + CLUSTER_MATMUL_PROGRAM) + flags,
        insecure_);
  }
};

TEST_F(Guide003Test, TheCommandsOnTheGuidesAddresses) {
  auto& ps = TypeCommand(kParameterServer, kTypedPs);
  auto& worker = TypeCommand(kWorker, kTypedWorker);
  ASSERT_EQ(worker.Wait(), 0) << Output();
  EXPECT_EQ(ps.Wait(), 0) << Output();
  EXPECT_THAT(ps.err(), HasSubstr("Started server with target: grpc://192.168.1.1:2222"));
  EXPECT_THAT(worker.err(), HasSubstr("Started server with target: grpc://192.168.1.12:2222"));
  // The lines of log_device_placement: variables on the parameter server, the product on the worker.
  EXPECT_THAT(worker.out(),
              AllOf(ContainsRegex("x: \\(VarHandleOp\\): /job:ps/replica:0/task:0/device:CPU:0\n"),
                    ContainsRegex("MatMul[^ ]*: \\(MatMul\\): /job:worker/replica:0/task:0/device:CPU:0\n"),
                    HasSubstr("\nruns: 200, mat: 20\n")));
  EXPECT_THAT(Lines(worker.out()),
              Each(MatchesRegex("[^ ]+: \\([A-Za-z0-9_]+\\): /job:(ps|worker)/replica:0/task:0/device:CPU:0|"
                                "runs: 200, mat: 20")));
  EXPECT_THAT(Lines(ps.out()), IsEmpty());
}

TEST_F(Guide003Test, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  auto& program = Type(kWorker, Replaced(kTypedWorker, "build/release/bin/cluster_matmul", CLUSTER_MATMUL_PROGRAM), {});
  EXPECT_EQ(program.Wait(), 1) << Output();
  EXPECT_THAT(program.err(),
              AllOf(HasSubstr("PermissionDenied"), HasSubstr("got 192.168.1.12:2222"),
                    HasSubstr("COHORT_ALLOW_INSECURE=1 before its command, on this host, 192.168.1.12,")));
}

// The guide's target, with "/" for "://", and the right one.
TEST_F(Guide003Test, TheGuidesMasterIsAnErrorThatNamesTheRightOne) {
  TypeCommand(kParameterServer, kTypedPs);
  auto& wrong = TypeCommand(kWorker, kTypedWorker, " --master=grpc/192.168.1.12:2222");
  EXPECT_EQ(wrong.Wait(), 1) << Output();
  EXPECT_THAT(wrong.err(), HasSubstr("did you mean \"grpc://192.168.1.12:2222\"?"));
  auto& right = TypeCommand(kWorker, kTypedWorker, " --master=grpc://192.168.1.12:2222");
  ASSERT_EQ(right.Wait(), 0) << Output();
  EXPECT_THAT(right.out(), HasSubstr("runs: 200, mat: 20"));
}

TEST_F(Guide003Test, TheGuidesMisspeltFlagsAreAnsweredWithTheRightOnes) {
  for (const auto& [wrong, right] :
       {std::pair("--task_idex=0", "--task_index"), std::pair("--is_chierf=true", "--is_chief")}) {
    auto& program = TypeCommand(kWorker, "build/release/bin/cluster_matmul --job_name=worker ", wrong);
    EXPECT_EQ(program.Wait(), 2) << Output();
    EXPECT_THAT(program.err(), HasSubstr(std::string("did you mean ") + right)) << wrong;
  }
}

TEST(Guide003ReadmeTest, ShowsTheCommandsThatAreTested) {
  const std::string text = FileText(std::string(GUIDES_FOLDER) + "/003_monitored_session/README.md");
  for (const char* typed : {kTypedPs, kTypedWorker}) {
    EXPECT_THAT(text, HasSubstr(std::string("\nCOHORT_ALLOW_INSECURE=1 ") + typed + "\n"));
  }
}

}  // namespace
}  // namespace cohort::testing
