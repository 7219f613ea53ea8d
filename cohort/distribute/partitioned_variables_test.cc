// Variables that get their parts from a partitioner, without a strategy, as jobs with replica_device_setter make them.
#include "cohort/ops/partitioned_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/partitioners.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/sampled_losses.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"
#include "cohort/train/device_setter.h"
#include "cohort/train/optimizer.h"

namespace cohort::ops {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Ids = std::vector<int64_t>;

class PartitionedVariablesTest : public ::testing::Test {
 protected:
  PartitionedVariablesTest() { RegisterAll(); }
  // A table [7, 2] whose row i is (10 i, 10 i + 1), in `parts` parts.
  Variable Table(int parts) {
    Tensor rows(DType::kFloat32, Shape{7, 2});
    for (int i = 0; i < 14; ++i) rows.data<float>()[i] = static_cast<float>(10 * (i / 2) + i % 2);
    return GetVariable(
        graph_, "table", Shape{7, 2},
        {.initializer = initializers::Constant(rows), .partitioner = distribute::FixedSizePartitioner(parts)});
  }
  std::vector<float> Rows(const Variable& table, const Ids& ids, PartitionStrategy strategy) {
    const Output rows = EmbeddingLookup(table, Const(graph_, ids), strategy);
    Session session(graph_);
    session.Run(GlobalVariablesInitializer(graph_));
    session.Run(LocalVariablesInitializer(graph_));
    return session.Run(rows).ToVector<float>();
  }
  Graph graph_;
};

TEST_F(PartitionedVariablesTest, PartsGoToTheParameterServersInTurn) {
  const DeviceScope replica(graph_, train::ReplicaDeviceSetter({.ps_tasks = 2}));
  const Variable table = Table(3);
  const Variable whole = GetVariable(graph_, "whole", Shape{4, 2}, GetVariableOptions{});
  std::vector<std::string> places, names;
  for (const Variable& part : table.parts()) {
    names.push_back(part.name());
    places.push_back(part.handle().node->device());
  }
  EXPECT_THAT(names, ElementsAre("table/part_0", "table/part_1", "table/part_2"));
  EXPECT_THAT(places, ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"));
  EXPECT_EQ(table.shape(), (Shape{7, 2}));
  EXPECT_TRUE(whole.parts().empty());
  EXPECT_EQ(whole.handle().node->device(), "/job:ps/task:1");
}

TEST_F(PartitionedVariablesTest, LookupsFindRowsInOrderOrModuloTheParts) {
  const Variable table = Table(3);  // parts of 3, 2 and 2 rows
  EXPECT_THAT(Rows(table, {6, 0, 3}, PartitionStrategy::kDiv), ElementsAre(60, 61, 0, 1, 30, 31));
  // Row 4 is row 1 of part 1, which is row 4 of the whole; row 5 is row 1 of part 2.
  EXPECT_THAT(Rows(table, {0, 1, 2, 3, 6}, PartitionStrategy::kMod), ElementsAre(0, 1, 30, 31, 50, 51, 10, 11, 20, 21));
}

TEST_F(PartitionedVariablesTest, LookupsInListsAndValues) {
  const std::vector<Variable> parts = Table(2).parts();
  const Output ids = Const(graph_, Ids{5, 1}, Shape{1, 2});
  const Output of_list = EmbeddingLookup(parts, ids), of_value = EmbeddingLookup(parts[0].value(), Const(graph_, 3));
  EXPECT_EQ(of_list.shape().rank(), 3);
  Session session(graph_);
  session.Run(GlobalVariablesInitializer(graph_));
  const auto values = session.Run({of_list, of_value});
  EXPECT_EQ(values[0].shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(values[0].ToVector<float>(), ElementsAre(50, 51, 10, 11));
  EXPECT_THAT(values[1].ToVector<float>(), ElementsAre(30, 31));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { EmbeddingLookup(std::vector<Variable>{}, ids); }),
              HasSubstr("got none"));
  const Output outside = EmbeddingLookup(parts, Const(graph_, Ids{7}));
  EXPECT_THROW(session.Run(outside), InvalidArgumentError);
}

TEST_F(PartitionedVariablesTest, AnIdThatIsNoRowIsNamedWithTheRowsOfItsPart) {
  const Variable table = Table(3);  // of 3, 2 and 2 rows
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Rows(table, {1, 8}, PartitionStrategy::kDiv);
              }),
              AllOf(HasSubstr("indices[0] = 3 is not in [0, 2), the rows of variable 'table/part_2'"),
                    HasSubstr("Row r of 'table/part_2', which is part 2 of a table, is row 5 + r of the table.")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Rows(table, {1, -2}, PartitionStrategy::kMod);
              }),
              AllOf(HasSubstr("indices[1] = -1 is not in [0, 2), the rows of variable 'table/part_1'"),
                    HasSubstr("Row r of 'table/part_1', which is part 1 of a table, is row 1 + 3 * r of the table.")));
}

TEST_F(PartitionedVariablesTest, AScopeCutsWhatIsMadeInIt) {
  {
    const PartitionerScope scope(graph_, distribute::FixedSizePartitioner(2));
    EXPECT_EQ(GetVariable(graph_, "a", Shape{4}).parts().size(), 2u);
    // The partitioner of the variable has priority, and its parts are not cut again.
    const Partitioner three = distribute::FixedSizePartitioner(3);
    EXPECT_EQ(GetVariable(graph_, "b", Shape{6}, {.partitioner = three}).parts().size(), 3u);
    const Partitioner one = distribute::FixedSizePartitioner(1);
    EXPECT_TRUE(GetVariable(graph_, "whole", Shape{6}, {.partitioner = one}).parts().empty());
    EXPECT_TRUE(GetVariable(graph_, "scalar", Shape{}).parts().empty());
    EXPECT_TRUE(GetOrCreateGlobalStep(graph_).parts().empty());
  }
  EXPECT_TRUE(GetVariable(graph_, "c", Shape{4}).parts().empty());
  EXPECT_EQ(graph_.variables().size(), 2u + 1 + 3 + 1 + 1 + 1 + 1 + 1);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([this] {
                GetVariable(graph_, "d", Shape{4, 4}, {.partitioner = distribute::FixedSizePartitioner(2, 1)});
              }),
              AllOf(HasSubstr("'d'"), HasSubstr("axis 0")));
}

// The job of word2vec: both tables in parts, and a loss that falls.
TEST_F(PartitionedVariablesTest, NceLossTrainsTablesInParts) {
  graph_.set_seed(1);
  const Partitioner two = distribute::FixedSizePartitioner(2);
  const Variable table = GetVariable(graph_, "embeddings", Shape{20, 4}, {.partitioner = two});
  const Variable weights = GetVariable(graph_, "nce_weights", Shape{20, 4}, {.partitioner = two});
  const Variable biases =
      GetVariable(graph_, "nce_biases", Shape{20}, {.initializer = initializers::Zeros(), .partitioner = two});
  const Output ids = Const(graph_, Ids{0, 5, 12, 19}), labels = Const(graph_, Ids{1, 6, 13, 18}, Shape{4, 1});
  for (const PartitionStrategy strategy : {PartitionStrategy::kDiv, PartitionStrategy::kMod}) {
    const Output rows = EmbeddingLookup(table, ids, strategy);
    const Output loss =
        Mean(NceLoss(weights, biases, labels, rows, 5, 20, {.partition_strategy = strategy, .seed = 2}));
    Node* step = train::GradientDescentOptimizer(0.5).Minimize(loss);
    Session session(graph_);
    session.Run(GlobalVariablesInitializer(graph_));
    const auto first = session.Run({}, {loss}, {step})[0].scalar<float>();
    for (int i = 0; i < 60; ++i) session.Run(step);
    EXPECT_LT(session.Run(loss).scalar<float>(), 0.5f * first);
  }
}

}  // namespace
}  // namespace cohort::ops
