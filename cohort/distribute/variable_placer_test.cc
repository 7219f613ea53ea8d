// A strategy of the test's own, as a new kind would be made: it places each variable by its name, shape and dtype, and
// cuts large ones.
#include "cohort/distribute/variable_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cohort/checkpoint/saver.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/replica_inputs.h"
#include "cohort/distribute/strategies.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

// Two "parameter servers", /cpu:2 and /cpu:3: tables of float32 with more than four rows are cut between them, the
// first with one row more if there is an odd one; other variables live on one of them, by their name.
class ByName final : public VariablePlacer {
 public:
  VariableInfo* Create(const Strategy& /*strategy*/, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override {
    if (request.dtype == DType::kFloat32 && request.shape.rank() == 2 && request.shape.dim(0) > 4) {
      const int64_t rows = request.shape.dim(0);
      return CreateInParts(graph, next, request, {{(rows + 1) / 2, "/device:CPU:2"}, {rows / 2, "/device:CPU:3"}});
    }
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, request.name.starts_with("b") ? "/device:CPU:3" : "/device:CPU:2");
    return next(request);
  }
  bool makes_copies() const override { return false; }
  std::string shared_device() const override { return "/device:CPU:2"; }
  std::vector<std::string> devices() const override { return {"/device:CPU:2", "/device:CPU:3"}; }
};

StrategyPtr TwoReplicasAndTwoServers() {
  StrategyLayout layout;
  layout.name = "ByNameStrategy";
  layout.devices = layout.members = {"/device:CPU:0", "/device:CPU:1"};
  return std::make_shared<const Strategy>(std::move(layout), std::make_unique<ByName>());
}

class VariablePlacerTest : public ::testing::Test {
 protected:
  VariablePlacerTest() { RegisterAll(); }
};

TEST_F(VariablePlacerTest, APartitionedVariableIsOneToItsUser) {
  const StrategyPtr strategy = TwoReplicasAndTwoServers();
  Graph graph;
  ops::Variable table, bias;
  {
    const auto scope = strategy->Scope(graph);
    Tensor initial(DType::kFloat32, Shape{5, 2});
    for (int i = 0; i < 10; ++i) initial.data<float>()[i] = static_cast<float>(i);
    table = ops::Variable(graph, initial, {.name = "table"});
    bias = ops::Variable(graph, Tensor::Vector<float>({1, 2}), {.name = "bias"});
  }
  EXPECT_EQ(bias.handle().node->device(), "/device:CPU:3");
  EXPECT_TRUE(bias.parts().empty());
  EXPECT_EQ(table.name(), "table");
  EXPECT_EQ(table.shape(), (Shape{5, 2}));
  EXPECT_EQ(&table.graph(), &graph);
  const std::vector<ops::Variable> parts = table.parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name(), "table/part_0");
  EXPECT_EQ(parts[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(parts[0].handle().node->device(), "/device:CPU:2");
  EXPECT_EQ(parts[1].name(), "table/part_1");
  EXPECT_EQ(parts[1].shape(), (Shape{2, 2}));
  EXPECT_EQ(parts[1].handle().node->device(), "/device:CPU:3");
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { table.handle(); }),
              AllOf(HasSubstr("'table'"), HasSubstr("2 parts"), HasSubstr("parts()")));

  const auto session = strategy->OpenSession(graph);
  EXPECT_FALSE(session->Run(ops::ReportUninitializedVariables(graph)).ToVector<std::string>().empty());
  session->Run(ops::GlobalVariablesInitializer(graph));
  session->Run(ops::LocalVariablesInitializer(graph));
  EXPECT_TRUE(session->Run(ops::ReportUninitializedVariables(graph)).ToVector<std::string>().empty());
  EXPECT_EQ(session->Run(table.value()).ToVector<float>(), (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Output indices = ops::Const(graph, Tensor::Vector<int64_t>({4, 0, 3, 4}));
  const Output pairs = ops::Reshape(indices, {2, 2});
  const Tensor rows = session->Run(table.Gather(pairs));
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(rows.ToVector<float>(), (Floats{8, 9, 0, 1, 6, 7, 8, 9}));
  session->Run(table.AssignAdd(ops::Const(graph, Floats(10, 1.0f), Shape{5, 2})));
  EXPECT_EQ(session->Run(table.Read()).ToVector<float>(), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  session->Run(table.AssignSub(table.value()));
  EXPECT_EQ(session->Run(table.value()).ToVector<float>(), Floats(10, 0.0f));
  session->Run(table.initializer());
  EXPECT_EQ(session->Run(parts[1].value()).ToVector<float>(), (Floats{6, 7, 8, 9}));
}

// A gradient of looked-up rows changes these rows alone, in the part that has them.
TEST_F(VariablePlacerTest, GradientsOfLookupsAreSparseInEachPart) {
  const StrategyPtr strategy = TwoReplicasAndTwoServers();
  Graph graph;
  ops::Variable table;
  {
    const auto scope = strategy->Scope(graph);
    table = ops::GetVariable(graph, "table", Shape{7, 1}, DType::kFloat32, initializers::Zeros());
  }
  const Output loss = ops::Sum(table.Gather(ops::Const(graph, Tensor::Vector<int64_t>({6, 1, 6}))));
  const auto parts = table.parts();
  const std::vector<Gradient> gradients = Gradients({loss}, {parts[0].handle(), parts[1].handle()});
  ASSERT_TRUE(gradients[0].is_sparse());
  ASSERT_TRUE(gradients[1].is_sparse());
  const auto session = strategy->OpenSession(graph);
  session->Run(ops::GlobalVariablesInitializer(graph));
  EXPECT_EQ(session->Run(gradients[0].indices).ToVector<int64_t>(), Ints{1});
  EXPECT_EQ(session->Run(gradients[1].indices).ToVector<int64_t>(), (Ints{2, 2}));
  EXPECT_EQ(session->Run(ToDense(gradients[1])).ToVector<float>(), (Floats{0, 0, 2}));
}

Floats TrainTable(const StrategyPtr& strategy, std::vector<std::string>* devices_of_slots) {
  Graph graph;
  ops::Variable table, w, bias;
  {
    const auto scope = strategy->Scope(graph);
    table = ops::GetVariable(graph, "table", Shape{9, 3}, DType::kFloat32, initializers::Constant(0.3));
    w = ops::GetVariable(graph, "w", Shape{3, 1}, DType::kFloat32, initializers::Constant(0.5));
    bias = ops::GetVariable(graph, "bias", Shape{1}, DType::kFloat32, initializers::Zeros());
  }
  Tensor index(DType::kInt64, Shape{13}), y(DType::kFloat32, Shape{13, 1});
  for (int64_t i = 0; i < 13; ++i) {
    index.data<int64_t>()[i] = i * 5 % 9;
    y.data<float>()[i] = std::sin(static_cast<float>(i * 5 % 9));
  }
  const auto batches = DistributeDataset(strategy, data::Dataset::FromTensorSlices({index, y}).Batch(5));
  const ReplicaInputs inputs(graph, batches);
  const auto losses = strategy->Run(graph, [&](ReplicaContext& replica) {
    const std::vector<Output>& batch = inputs.Of(replica);
    const Output rows = replica.Local(table).Gather(batch[0]);
    const Output got = ops::MatMul(ops::Tanh(rows), replica.Local(w)) + replica.Local(bias);
    const Output penalty =
        ops::Sum(ops::Square(replica.Local(table).value())) * (0.01f / replica.num_replicas_in_sync());
    return replica.MeanOfGlobalBatch(ops::SquaredDifference(got, batch[1])) + penalty;
  });
  train::AdagradOptimizer optimizer(0.2);
  Node* update = strategy->Minimize(optimizer, losses);
  for (const ops::Variable& slot : optimizer.variables()) {
    devices_of_slots->push_back(StrCat(slot.name(), " ", slot.handle().node->device()));
  }
  const auto session = strategy->OpenSession(graph);
  const ReplicaStep step = inputs.MakeStep(*session, {}, {update});
  session->Run(ops::GlobalVariablesInitializer(graph));
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto iterator = batches.MakeIterator();
    for (PerReplica<std::vector<Tensor>> parts; iterator->Next(&parts);) step(parts);
  }
  Floats all;
  for (const Tensor& value : session->Run({}, {table, w, bias})) {
    const Floats values = value.ToVector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_F(VariablePlacerTest, PartitionedVariablesTrainAsOnOneDevice) {
  std::vector<std::string> slots, of_one;
  const Floats expected = TrainTable(Default(), &of_one);
  const Floats got = TrainTable(TwoReplicasAndTwoServers(), &slots);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6) << i;
  EXPECT_NE(got[0], 0.3f);
  EXPECT_THAT(slots, ElementsAre("table/part_0/Adagrad /device:CPU:2", "table/part_1/Adagrad /device:CPU:3",
                                 "w/Adagrad /device:CPU:2", "bias/Adagrad /device:CPU:3"));
}

TEST_F(VariablePlacerTest, PartsThatDoNotMakeUpTheVariableAreNamed) {
  Graph graph;
  const VariableMaker next = [&](const VariableRequest& request) { return ops::MakeVariable(graph, request); };
  VariableRequest request;
  request.name = "w";
  request.shape = Shape{5, 2};
  request.initial_value = [&] { return ops::Const(graph, Floats(10, 0.0f), Shape{5, 2}); };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                CreateInParts(graph, next, request, {{3, "/cpu:0"}, {3, "/cpu:1"}});
              }),
              AllOf(HasSubstr("'w'"), HasSubstr("[5,2]"), HasSubstr("2 parts with 6 rows")));
}

// A variable "table" of five rows, in parts of so many rows or, without parts, in one piece, and a training step.
struct SavedTable {
  explicit SavedTable(const std::vector<int64_t>& rows_of_parts, bool sharded = false) {
    VariableRequest request;
    request.name = "table";
    request.shape = Shape{5, 2};
    request.initial_value = [this] { return ops::Const(graph, Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape{5, 2}); };
    const VariableMaker next = [this](const VariableRequest& wanted) { return ops::MakeVariable(graph, wanted); };
    std::vector<VariablePart> parts;
    for (const int64_t rows : rows_of_parts) parts.push_back({rows, ""});
    table = ops::Variable(parts.empty() ? next(request) : CreateInParts(graph, next, request, parts));
    step = optimizer.Minimize(ops::Sum(ops::Square(table.value())));
    init = ops::GlobalVariablesInitializer(graph);
    saver = std::make_unique<Saver>(graph, SaverOptions{.sharded = sharded});
    session = std::make_unique<Session>(graph);
  }
  Floats Values() { return session->Run(table.value()).ToVector<float>(); }

  Graph graph;
  ops::Variable table;
  train::AdagradOptimizer optimizer{0.5};
  Node *step = nullptr, *init = nullptr;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session;
};

// As TensorFlow does: a checkpoint has parts as slices of one tensor, so another number of parts can read it.
TEST_F(VariablePlacerTest, ACheckpointOfAVariableInPartsFitsAnyNumberOfParts) {
  const cohort::testing::TempFolder folder;
  const std::vector<std::vector<int64_t>> cuts = {{}, {3, 2}, {1, 1, 3}};
  for (const auto& from : cuts) {
    for (const bool sharded : {false, true}) {
      SavedTable saved(from, sharded);
      saved.session->Run(saved.init);
      saved.session->Run(saved.step);
      const std::string prefix = saved.saver->Save(*saved.session, folder / "model");
      const BundleReader reader(prefix);
      EXPECT_EQ(reader.tensors().size(), 2u);
      EXPECT_EQ(reader.Read("table").ToVector<float>(), saved.Values());
      EXPECT_EQ(reader.Find("table/Adagrad").shape, (Shape{5, 2}));
      EXPECT_EQ(reader.StoredParts("table").size(), std::max<size_t>(from.size(), 1));
      const Floats before = saved.Values();
      saved.session->Run(saved.step);
      const Floats after = saved.Values();
      for (const auto& to : cuts) {
        SCOPED_TRACE(StrCat(from.size(), " parts to ", to.size(), sharded ? ", sharded" : ""));
        SavedTable restored(to);
        restored.saver->Restore(*restored.session, prefix);
        EXPECT_EQ(restored.Values(), before);
        restored.session->Run(restored.step);  // the slots are restored, too
        EXPECT_EQ(restored.Values(), after);
        SavedTable latest(to);
        EXPECT_EQ(latest.saver->RestoreLatest(*latest.session, folder.path()), prefix);
        EXPECT_EQ(latest.Values(), before);
      }
    }
  }
}

TEST_F(VariablePlacerTest, PartsThatWereSavedUnderTheirOwnNamesAreRestored) {
  const cohort::testing::TempFolder folder;
  const std::string prefix = folder / "model";
  BundleWriter writer(prefix);
  for (const char* name : {"table/part_0", "table/part_0/Adagrad"}) {
    writer.Add(name, Tensor::Zeros(DType::kFloat32, Shape{3, 2}));
  }
  for (const char* name : {"table/part_1", "table/part_1/Adagrad"}) {
    writer.Add(name, Tensor::Zeros(DType::kFloat32, Shape{2, 2}));
  }
  writer.Finish();
  SavedTable same({3, 2});
  same.saver->Restore(*same.session, prefix);
  EXPECT_EQ(same.Values(), Floats(10, 0.0f));
  SavedTable other({4, 1});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { other.saver->Restore(*other.session, prefix); }),
              AllOf(HasSubstr("'table/part_0' has shape [4,2]"), HasSubstr("has [3,2]")));
}

}  // namespace
}  // namespace cohort::distribute
