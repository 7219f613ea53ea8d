// Features of variable length: from the records of a file, over PaddedBatch and an iterator in a graph, to training
// steps with an embedding table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/record_io.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/data/readers/readers.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"
#include "cohort/proto/example.pb.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::data {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// Writes records with `ids`, none of which is 0, and with the label: the sum of the squares of the ids.
void WriteRecords(const std::string& path, const std::vector<std::vector<int64_t>>& lists) {
  RecordWriter writer(path);
  for (const std::vector<int64_t>& ids : lists) {
    proto::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    float label = 0;
    for (const int64_t id : ids) {
      features["ids"].mutable_int64_list()->add_value(id);
      label += static_cast<float>(id * id);
    }
    features["label"].mutable_float_list()->add_value(label);
    writer.Write(example.SerializeAsString());
  }
}

TEST(VariableLengthTest, RecordsTrainAnEmbedding) {
  ASSERT_TRUE(RegisterAll());
  const testing::TempFolder folder;
  WriteRecords(folder / "records", {{1, 2}, {3}, {}, {2, 3, 1, 1}, {2}, {3, 1, 3}});
  const std::vector<Feature> features = {{.name = "ids", .dtype = DType::kInt64, .variable_length = true},
                                         {.name = "label", .dtype = DType::kFloat32}};
  const Dataset batches = ParseExampleDataset(TFRecordDataset({folder / "records"}), features)
                              .Repeat()
                              .PaddedBatch(4, {.drop_remainder = true});

  Graph graph;
  const GraphIterator iterator = MakeGraphIterator(graph, batches);
  const std::vector<Output> next = iterator.GetNext();
  EXPECT_EQ(next[0].shape(), (Shape{4, -1}));
  const ops::Variable table(graph, Tensor::Zeros(DType::kFloat32, Shape{4, 1}), {.name = "table"});
  const Output is_id = ops::Cast(ops::NotEqual(next[0], ops::Const(graph, int64_t{0})), DType::kFloat32);
  const Output of_ids = ops::Squeeze(table.Gather(next[0]), {2});
  const Output loss = ops::Mean(ops::Square(ops::Sum(of_ids * is_id, {1}) - next[1]));
  const Gradient gradient = Gradients({loss}, {table.handle()}).at(0);
  ASSERT_TRUE(gradient.is_sparse());
  Node* const update = ops::ResourceScatterSub(table.handle(), gradient.indices, gradient.values * 0.1f);

  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  session.Run(iterator.initializer());
  for (int i = 0; i < 300; ++i) session.Run(update);
  EXPECT_THAT(session.Run(table).ToVector<float>(), Pointwise(FloatNear(1e-2f), std::vector<float>{0, 1, 4, 9}));
}

}  // namespace
}  // namespace cohort::data
