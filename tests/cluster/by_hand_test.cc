// Starts linear_regression as the comment at its beginning says. Each task is started by a command with the hosts as
// flags, without launcher, TF_CONFIG and token. Each test types such commands, waits for the programs, and checks their
// output and the checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/cluster/port_reservation.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

class ByHandTest : public LaunchTest {
 protected:
  // Returns the environment of a user's terminal, whose home is the test's folder.
  Words Terminal(const Words& variables = {}) const {
    Words command{"/usr/bin/env",      "-u",
                  "TF_CONFIG",         "-u",
                  "COHORT_TOKEN",      "-u",
                  "COHORT_TOKEN_FILE", "-u",
                  "XDG_CONFIG_HOME",   "HOME=" + File("home"),
                  "LC_ALL=C"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.push_back(LINEAR_REGRESSION_PROGRAM);
    return command;
  }
  // Runs a program that ends by itself, and waits for its end.
  std::unique_ptr<LaunchedProgram> Run(Words command, const Words& flags) const {
    command.insert(command.end(), flags.begin(), flags.end());
    auto program = std::make_unique<LaunchedProgram>(command);
    program->Wait();
    return program;
  }

  // Chooses the hosts of a new cluster. Later commands are for this cluster.
  void ChooseHosts(int ps, int workers) {
    programs_.clear();
    ports_.clear();
    hosts_ = {Hosts("ps", ps), Hosts("worker", workers)};
  }
  LaunchedProgram& Type(const std::string& job, int index, const Words& more) {
    Words command = Terminal();
    command.insert(command.end(), hosts_.begin(), hosts_.end());
    command.insert(command.end(), {"--job_name=" + job, "--task_index=" + std::to_string(index),
                                   "--logdir=" + File("logdir"), "--learning_rate=0.003"});
    command.insert(command.end(), more.begin(), more.end());
    auto& program = programs_[job + std::to_string(index)];
    program = std::make_unique<LaunchedProgram>(command);
    return *program;
  }
  void ExpectAllEndWell() {
    for (const auto& [name, program] : programs_) EXPECT_EQ(program->Wait(), 0) << name << ": " << program->err();
  }
  // Checks that the last checkpoint has y = 2 x + 10, up to the noise of 0.33. Returns its step.
  int64_t ExpectFitted() const {
    const BundleReader checkpoint(LatestCheckpoint(File("logdir")));
    EXPECT_NEAR(checkpoint.Read("weight").data<float>()[0], 2, 0.15);
    EXPECT_NEAR(checkpoint.Read("biase").data<float>()[0], 10, 0.15);
    return checkpoint.Read("global_step").scalar<int64_t>();
  }

  std::map<std::string, std::unique_ptr<LaunchedProgram>> programs_;

 private:
  std::string Hosts(const std::string& job, int count) {
    std::string flag = "--" + job + "_hosts=";
    for (int i = 0; i < count; ++i) {
      ports_.emplace_back();
      flag += (i > 0 ? "," : "") + ports_.back().Address();
    }
    return flag;
  }

  std::vector<PortReservation> ports_;
  Words hosts_;
};

TEST_F(ByHandTest, ThreeTerminals) {
  const Words flags{"--max_steps=20000", "--steps_to_validate=100"};
  ChooseHosts(1, 2);
  Type("ps", 0, flags);
  ASSERT_TRUE(
      Type("worker", 1, flags).WaitForText("Waiting for model to be ready"));  // otherwise it may start too late
  Type("worker", 0, flags);
  ExpectAllEndWell();
  for (const std::string worker : {"worker0", "worker1"}) {
    const std::vector<StepLine> lines = StepLines(programs_[worker]->out());
    ASSERT_FALSE(lines.empty()) << programs_[worker]->out();
    EXPECT_NEAR(lines.back().weight, 2, 0.15);
    EXPECT_NEAR(lines.back().biase, 10, 0.15);
    for (const StepLine& line : lines) EXPECT_EQ(line.step % 100, 0);
  }
  EXPECT_GE(ExpectFitted(), 20000);
}

TEST_F(ByHandTest, InGraph) {
  const Words flags{"--max_steps=3000", "--steps_to_validate=100", "--in_graph"};
  ChooseHosts(1, 2);
  for (const auto& [job, index] : {std::pair{"ps", 0}, {"worker", 0}, {"worker", 1}}) Type(job, index, flags);
  ExpectAllEndWell();
  EXPECT_FALSE(StepLines(programs_["worker0"]->out()).empty());
  EXPECT_THAT(programs_["worker1"]->out(), IsEmpty());  // this task only serves
  const int64_t last = ExpectFitted();
  EXPECT_GE(last, 3000);
  EXPECT_LE(last, 3001);  // there are two replicas, and each may have a step under way
  EXPECT_EQ(NumbersAfter(programs_["worker0"]->out(), "worker 0: "), std::vector<pid_t>{static_cast<pid_t>(last)});
}

TEST_F(ByHandTest, InGraphSynchronously) {
  const Words flags{"--max_steps=3000", "--steps_to_validate=100", "--in_graph", "--sync"};
  ChooseHosts(2, 2);
  for (const auto& [job, index] : {std::pair{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}}) {
    Type(job, index, flags);
  }
  ExpectAllEndWell();
  const std::vector<StepLine> lines = StepLines(programs_["worker0"]->out());
  ASSERT_EQ(lines.size(), 30u);  // one step at a time, so no step is left out
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i].step, static_cast<long>(i + 1) * 100);
  EXPECT_THAT(programs_["worker1"]->out(), IsEmpty());
  EXPECT_EQ(ExpectFitted(), 3000);
  EXPECT_THAT(programs_["worker0"]->out(), HasSubstr("worker 0: 3000 steps"));
}

TEST_F(ByHandTest, BetweenGraphsSynchronously) {
  const Words flags{"--max_steps=3000", "--steps_to_validate=100", "--sync"};
  ChooseHosts(1, 2);
  Type("ps", 0, flags);
  Type("worker", 1, flags);
  ASSERT_TRUE(programs_["worker1"]->WaitForText("Waiting for model to be ready")) << programs_["worker1"]->err();
  Type("worker", 0, flags);
  ExpectAllEndWell();
  EXPECT_FALSE(StepLines(programs_["worker0"]->out()).empty());
  EXPECT_THAT(programs_["worker1"]->err(), HasSubstr("SyncReplicasV2: replicas_to_aggregate=2; total_num_replicas=2"));
  EXPECT_GE(ExpectFitted(), 3000);  // the global step counts updates
}

// TensorFlow's workers would wait for ever for the token of the lost one, or for a new chief's tokens.
TEST_F(ByHandTest, BetweenGraphsSynchronouslyALostTaskStopsNobody) {
  for (const std::string lost : {"worker0", "worker1"}) {
    // The chief alone makes thousands of steps in the second after which the other worker asks again for the model.
    const Words flags{"--max_steps=30000", "--steps_to_validate=10", "--sync", "--fresh"};
    ChooseHosts(1, 2);
    Type("ps", 0, flags);
    Type("worker", 1, flags);
    ASSERT_TRUE(programs_["worker1"]->WaitForText("Waiting for model to be ready")) << programs_["worker1"]->err();
    Type("worker", 0, flags);
    ASSERT_TRUE(programs_[lost]->WaitForText("step: ")) << programs_[lost]->err();
    programs_[lost]->Signal(SIGKILL);
    EXPECT_EQ(programs_[lost]->Wait(), 128 + SIGKILL);
    if (lost == "worker0") {
      Type("worker", 0, {"--max_steps=30000", "--sync"});  // the chief comes back
    } else {
      programs_.erase(lost);
    }
    ExpectAllEndWell();
    EXPECT_GE(ExpectFitted(), 30000);
  }
}

TEST_F(ByHandTest, ASecondRunFollowsTheSavedStepUnlessFresh) {
  const auto first_step = [this](const Words& flags) {
    ChooseHosts(1, 1);
    Type("ps", 0, {});
    Type("worker", 0, flags);
    ExpectAllEndWell();
    const std::vector<StepLine> lines = StepLines(programs_["worker0"]->out());
    return lines.empty() ? -1 : lines.front().step;
  };
  EXPECT_EQ(first_step({"--steps_to_validate=1", "--max_steps=120"}), 1);
  EXPECT_EQ(first_step({"--steps_to_validate=1", "--max_steps=200"}), 121);
  EXPECT_EQ(first_step({"--steps_to_validate=1", "--max_steps=60", "--fresh"}), 1);
  EXPECT_EQ(first_step({"--steps_to_validate=1", "--max_steps=100"}), 61);  // the checkpoint is that of the fresh run
}

// A serving task reports that no chief has come, in the example and in `cohort serve`.
TEST_F(ByHandTest, ATaskThatServesWaitsForTheChiefAsLongAsItIsTold) {
  const PortReservation ps, worker;
  const Words place{"--ps_hosts=" + ps.Address(), "--worker_hosts=" + worker.Address(), "--job_name=ps",
                    "--task_index=0"};
  const auto expect_told = [&](const Words& command, const Words& flags, const std::string& seconds) {
    Words all = place;
    all.insert(all.end(), flags.begin(), flags.end());
    const auto program = Run(command, all);
    EXPECT_EQ(program->Wait(), 1) << program->err();
    EXPECT_THAT(program->err(), AllOf(HasSubstr("Unavailable"), HasSubstr("/job:ps/replica:0/task:0"),
                                      HasSubstr("the chief /job:worker/replica:0/task:0"), HasSubstr(worker.Address()),
                                      HasSubstr("within " + seconds + " s (chief timeout)")));
  };
  expect_told(Terminal(), {"--chief_timeout=0.2"}, "0.2");
  expect_told(Terminal({"COHORT_CHIEF_TIMEOUT=0.3"}), {}, "0.3");
  expect_told(Terminal({"COHORT_CHIEF_TIMEOUT=300"}), {"--chief_timeout=0.1"}, "0.1");
  expect_told({COHORT_PROGRAM, "serve"}, {"--chief_timeout=0.2"}, "0.2");
  const auto wrong = Run(Terminal({"COHORT_ORPHAN_TIMEOUT=soon"}), place);
  EXPECT_EQ(wrong->Wait(), 1);
  EXPECT_THAT(wrong->err(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("COHORT_ORPHAN_TIMEOUT"), HasSubstr("soon")));
}

TEST_F(ByHandTest, AnEvaluatorIsRefusedByName) {
  LaunchedProgram program(Launch({"--ps=1", "--workers=1", "--evaluator", "--grace=0"},
                                 {LINEAR_REGRESSION_PROGRAM, "--logdir=" + File("logdir")}));
  EXPECT_NE(program.Wait(), 0);
  EXPECT_THAT(program.err(), AllOf(HasSubstr("[evaluator/0] "), HasSubstr("InvalidArgument"),
                                   HasSubstr("got evaluator 0, which this program does not know")));
}

TEST_F(ByHandTest, APlaceWithoutAClusterIsAnError) {
  for (const Words& flags :
       {Words{"--job_name=ps"}, Words{"--task_index=1"}, Words{"--job_name=worker", "--task-index=0"}}) {
    const auto program = Run(Terminal(), flags);
    EXPECT_EQ(program->Wait(), 1) << flags[0];
    EXPECT_THAT(program->err(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("--ps_hosts and --worker_hosts"),
                                      HasSubstr("TF_CONFIG"), HasSubstr(flags[0])));
    EXPECT_THAT(program->out(), IsEmpty());
  }
  const auto half = Run(Terminal(), {"--ps_hosts=127.0.0.1:2222", "--job_name=ps"});
  EXPECT_EQ(half->Wait(), 1);
  EXPECT_THAT(half->err(), HasSubstr("expected --worker_hosts beside --ps_hosts=127.0.0.1:2222"));
  const auto nobody = Run(Terminal(), {"--worker_hosts=127.0.0.1:2222"});
  EXPECT_EQ(nobody->Wait(), 1);
  EXPECT_THAT(nobody->err(), HasSubstr("give --job_name and --task_index"));
}

TEST_F(ByHandTest, FlagsMayCompleteTFConfigButNotContradictIt) {
  const PortReservation port;
  const std::string cluster = R"("cluster":{"worker":[")" + port.Address() + R"("]})";
  const auto other = Run(Terminal({"TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":0}})"}),
                         {"--job_name=worker", "--task_index=1"});
  EXPECT_EQ(other->Wait(), 1);
  EXPECT_THAT(other->err(), AllOf(HasSubstr("what TF_CONFIG says, /job:worker/task:0"),
                                  HasSubstr("--job_name=worker --task_index=1")));
  const auto completed = Run(Terminal({"TF_CONFIG={" + cluster + "}"}),
                             {"--job_name=worker", "--max_steps=5", "--logdir=" + File("logdir")});
  EXPECT_EQ(completed->Wait(), 0) << completed->err();
  EXPECT_THAT(completed->err(), HasSubstr("grpc://" + port.Address()));
}

}  // namespace
}  // namespace cohort::testing
