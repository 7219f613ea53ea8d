#include "cohort/train/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"

namespace cohort::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SessionManagerTest : public ::testing::Test {
 protected:
  SessionManagerTest() {
    RegisterAll();
    step_ = ops::GetOrCreateGlobalStep(graph_);
    w_ = ops::GetVariable(graph_, "w", Shape{2}, DType::kFloat32, initializers::Constant(10.0));
  }

  const testing::TempFolder folder_;
  const std::string dir_ = folder_ / "logdir";
  Graph graph_;
  ops::Variable step_, w_;
  Coordinator coordinator_;
};

TEST_F(SessionManagerTest, OpsMayBeAddedUntilTheScaffoldIsFinalized) {
  Scaffold scaffold;
  const Output doubled = w_ * 2.0f;  // as a hook's Begin would
  scaffold.Finalize(graph_, /*writes=*/true);
  EXPECT_THROW(ops::Const(graph_, 1.0f), FailedPreconditionError);
  EXPECT_THROW(scaffold.Finalize(graph_, true), FailedPreconditionError);
  const SessionManager manager(graph_, scaffold, coordinator_);
  const PreparedSession prepared = manager.PrepareSession("", {}, {});
  EXPECT_EQ(prepared.restored, "");
  EXPECT_EQ(prepared.session->Run(doubled).ToVector<float>(), (std::vector<float>{20, 20}));
  EXPECT_EQ(scaffold.Step(*prepared.session), 0);
}

TEST_F(SessionManagerTest, RecoversOnlyFromACheckpoint) {
  Node* change = w_.Assign(ops::Const(graph_, Tensor::Vector<float>({1, 2})));
  Scaffold scaffold;
  scaffold.Finalize(graph_, true);
  const SessionManager manager(graph_, scaffold, coordinator_);
  EXPECT_EQ(manager.RecoverSession("", {}, {.checkpoint_dir = dir_}).session, nullptr);
  {
    const PreparedSession first = manager.PrepareSession("", {}, {.checkpoint_dir = dir_});
    first.session->Run(change);
    scaffold.saver()->Save(*first.session, dir_ + "/model.ckpt", 7);
  }
  const PreparedSession second = manager.RecoverSession("", {}, {.checkpoint_dir = dir_});
  EXPECT_EQ(second.restored, dir_ + "/model.ckpt-7");
  EXPECT_EQ(second.session->Run(w_.value()).ToVector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(SessionManagerTest, WaitsForACheckpointAsLongAsItIsTold) {
  Scaffold scaffold;
  scaffold.Finalize(graph_, true);
  const SessionManager impatient(graph_, scaffold, coordinator_, {.max_wait = std::chrono::milliseconds(100)});
  EXPECT_THAT(MessageOf<DeadlineExceededError>(
                  [&] { impatient.PrepareSession("", {}, {.checkpoint_dir = dir_, .wait_for_checkpoint = true}); }),
              AllOf(HasSubstr(dir_), HasSubstr("0.1 s")));
  const SessionManager patient(graph_, scaffold, coordinator_, {.max_wait = std::chrono::minutes(1)});
  auto waiting = std::async(std::launch::async, [&] {
    return patient.PrepareSession("", {}, {.checkpoint_dir = dir_, .wait_for_checkpoint = true}).restored;
  });
  {  // what another process would write
    Graph graph;
    ops::GetOrCreateGlobalStep(graph);
    ops::GetVariable(graph, "w", Shape{2}, DType::kFloat32, initializers::Constant(5.0));
    Saver saver(graph);
    Session session(graph);
    session.Run(ops::GlobalVariablesInitializer(graph));
    saver.Save(session, dir_ + "/model.ckpt", 3);
  }
  EXPECT_EQ(waiting.get(), dir_ + "/model.ckpt-3");
}

TEST(CoordinatorTest, AnIntervalWithoutALimitMeansOneCall) {
  Coordinator coordinator;
  std::atomic<int> calls = 0;
  std::promise<void> again;
  coordinator.Loop("once", std::chrono::milliseconds::max(), [&] {
    if (++calls == 2) again.set_value();
  });
  EXPECT_EQ(again.get_future().wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  coordinator.RequestStop();
  coordinator.Join();
  EXPECT_EQ(calls, 1);
}

TEST_F(SessionManagerTest, AStopEndsTheWait) {
  Scaffold scaffold;
  scaffold.Finalize(graph_, true);
  const SessionManager manager(graph_, scaffold, coordinator_);
  coordinator_.RequestStop();
  EXPECT_THAT(MessageOf<CancelledError>(
                  [&] { manager.PrepareSession("", {}, {.checkpoint_dir = dir_, .wait_for_checkpoint = true}); }),
              HasSubstr("a checkpoint"));
}

}  // namespace
}  // namespace cohort::train
