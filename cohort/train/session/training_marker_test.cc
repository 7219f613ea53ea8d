// Tests of a chief that finds variables of its own training, in servers that have outlived its session.
#include "cohort/train/session/training_marker.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/ops/constant.h"
#include "cohort/registration.h"
#include "cohort/train/session_manager.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using Floats = std::vector<float>;

// The chief's program. The global step lies on ps 0, and w on ps 1.
struct Chief {
  explicit Chief(cohort::testing::LocalCluster& servers) : target(servers.target("worker", 0)) {
    RegisterAll();
    {
      const DeviceScope device(graph, "/job:ps/task:0");
      step = ops::GetOrCreateGlobalStep(graph);
      count = step.AssignAdd(1);
    }
    const DeviceScope device(graph, "/job:ps/task:1");
    w = ops::GetVariable(graph, "w", Shape{2}, DType::kFloat32, initializers::Constant(10.0));
    change = w.Assign(ops::Const(graph, Tensor::Vector<float>({1, 2})));
    marker = TrainingMarker(graph);
    scaffold.Finalize(graph, /*writes=*/true);
  }
  PreparedSession Prepare(const PrepareOptions& options) {
    return SessionManager(graph, scaffold, coordinator, {.marker = &marker}).PrepareSession(target, {}, options);
  }

  const std::string target;
  Graph graph;
  ops::Variable step, w;
  Node* count = nullptr;
  Node* change = nullptr;
  TrainingMarker marker;
  Scaffold scaffold;
  Coordinator coordinator;
};

class TrainingMarkerTest : public ::testing::Test {
 protected:
  cohort::testing::LocalCluster servers_{{{"ps", 2}, {"worker", 1}}};
  const cohort::testing::TempFolder folder_;
  const std::string dir_ = folder_ / "logdir";
};

TEST_F(TrainingMarkerTest, AnotherChiefOfTheSameFolderGoesOnWithTheValues) {
  int64_t number = 0;
  {
    Chief first(servers_);
    const PreparedSession prepared = first.Prepare({.checkpoint_dir = dir_});
    prepared.session->Run(first.change);
    number = prepared.marker;
    EXPECT_GT(number, 0);
  }
  {
    Chief second(servers_);
    const PreparedSession prepared = second.Prepare({.checkpoint_dir = dir_});
    EXPECT_EQ(prepared.marker, number);
    EXPECT_EQ(prepared.session->Run(second.w.value()).ToVector<float>(), (Floats{1, 2}));
  }
  for (const PrepareOptions& options :
       {PrepareOptions{.checkpoint_dir = dir_, .restore = false}, PrepareOptions{.checkpoint_dir = dir_ + "2"}}) {
    Chief other(servers_);
    const PreparedSession prepared = other.Prepare(options);
    EXPECT_NE(prepared.marker, number);
    EXPECT_EQ(prepared.session->Run(other.w.value()).ToVector<float>(), (Floats{10, 10}));
    prepared.session->Run(other.change);
  }
}

TEST_F(TrainingMarkerTest, RestoresEverythingOrOnlyWhatWasLost) {
  for (const bool mixed : {false, true}) {
    SCOPED_TRACE(mixed);
    const std::string dir = dir_ + (mixed ? "/mixed" : "/together");
    Chief chief(servers_);
    {
      const PreparedSession first = chief.Prepare({.checkpoint_dir = dir});
      first.session->Run(chief.change);
      chief.scaffold.saver()->Save(*first.session, dir + "/model.ckpt", 0);
      for (int i = 0; i < 3; ++i) first.session->Run(chief.count);
    }
    servers_.Stop("ps", 1);
    servers_.Restart("ps", 1);
    const PreparedSession again = chief.Prepare({.checkpoint_dir = dir, .allow_mixed_steps = mixed});
    EXPECT_EQ(again.restored, dir + "/model.ckpt-0");
    EXPECT_EQ(again.session->Run(chief.w.value()).ToVector<float>(), (Floats{1, 2}));
    EXPECT_EQ(chief.scaffold.Step(*again.session), mixed ? 3 : 0);
  }
}

}  // namespace
}  // namespace cohort::train
