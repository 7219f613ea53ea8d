// Map, Filter and Interleave with functions of graphs: run, shipped, restored, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/backends/register.h"
#include "cohort/core/error.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/serialize.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/testing/drain.h"
#include "cohort/graph/function.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;
using Rows = std::vector<std::vector<int64_t>>;

const bool kRegistered = [] {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  return true;
}();

Output Number(Graph& graph, int64_t value) { return ops::Const(graph, value); }

// x -> (3 x, x + 1)
Outputs TriplesAndNext(Graph& body, const Outputs& args) {
  return {args[0] * Number(body, 3), args[0] + Number(body, 1)};
}

TEST(GraphFunctionTest, MapsElements) {
  ASSERT_TRUE(kRegistered);
  for (const int parallel : {1, 3}) {
    const Dataset mapped = Dataset::Range(4).Map(TriplesAndNext, {.num_parallel_calls = parallel});
    EXPECT_EQ(Drain(mapped), (Rows{{0, 1}, {3, 2}, {6, 3}, {9, 4}}));
    EXPECT_EQ(ToString(mapped.element_spec()), "(int64[], int64[])");
    EXPECT_EQ(Drain(Deserialize(Serialize(mapped))), Drain(mapped));
  }
}

TEST(GraphFunctionTest, ShapesAreInferred) {
  const Dataset images = Dataset::FromTensorSlices({Tensor::Zeros(DType::kUint8, Shape{5, 2, 2})}).Batch(2, true);
  const Dataset scaled = images.Map([](Graph& body, const Outputs& args) -> Outputs {
    return {ops::Cast(args[0], DType::kFloat32) / ops::Const(body, 255.0f)};
  });
  EXPECT_EQ(ToString(scaled.element_spec()), "(float32[2,2,2])");
  EXPECT_EQ(scaled.MakeIterator()->Next()[0].shape(), (Shape{2, 2, 2}));
}

TEST(GraphFunctionTest, AFunctionOfALibraryServesManyDatasets) {
  Graph graph;
  graph.DefineFunction("swap", {{DType::kInt64, Shape()}, {DType::kInt64, Shape()}},
                       [](Graph&, const Outputs& args) -> Outputs {
                         return {args[1], args[0]};
                       });
  const Dataset pairs = Dataset::Zip({Dataset::Range(3), Dataset::Range(10, 13)});
  const Dataset swapped = pairs.Map(graph.FindFunction("swap"));
  EXPECT_EQ(Drain(swapped), (Rows{{10, 0}, {11, 1}, {12, 2}}));
  EXPECT_EQ(Drain(swapped.Map(graph.FindFunction("swap"))), Drain(pairs));
  EXPECT_THAT(swapped.ToString(), HasSubstr(".Map(swap)"));
}

Dataset ParsedNumbers() {
  const auto above_three = [](Graph& body, const Outputs& args) -> Outputs {
    return {ops::Greater(args[0], Number(body, 3))};
  };
  const auto up_to = [](Graph& body, const Outputs& args) -> Outputs {
    return {ops::Range(Number(body, 0), args[0], Number(body, 1))};
  };
  const auto below_eight = [](Graph& body, const Outputs& args) -> Outputs {
    return {ops::Less(args[0], Number(body, 8))};
  };
  return Dataset::Range(99)
      .Filter(above_three)
      .TakeWhile(below_eight)
      .Interleave(up_to, {.cycle_length = 2})
      .Shuffle(4)
      .Batch(3)
      .Prefetch(1);
}

TEST(GraphFunctionTest, FiltersAndInterleaves) {
  const auto up_to = [](Graph& body, const Outputs& args) -> Outputs {
    return {ops::Range(Number(body, 0), args[0], Number(body, 1))};
  };
  EXPECT_THAT(Scalars(Dataset::Range(4).Interleave(up_to, {.cycle_length = 2})), ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_THAT(Scalars(Dataset::Range(4).FlatMap(up_to)), ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_EQ(Drain(ParsedNumbers()).size(), 8u);  // 4 + 5 + 6 + 7 numbers
}

// It yields slices, which the description says: sharding by file goes on to the reader without a look at an element.
TEST(GraphFunctionTest, AnInterleaveByAGraphReadsNoFiles) {
  const auto slices = [](Graph&, const Outputs& args) { return args; };
  const Dataset names = FileNames({"no_such_file_0", "no_such_file_1"}).Repeat(1);
  const Dataset lines = TextLineDataset(names).Batch(2).Interleave(slices);
  EXPECT_THAT(AutoShard(lines, 2, 1, AutoShardPolicy::kFile).ToString(),
              HasSubstr("string[2]).Repeat(1).Shard(2, 1).TextLine().Batch(2).Interleave(slices of interleave_fn"));
}

TEST(GraphFunctionTest, ShippedPipelinesGoOnFromPositions) {
  const Dataset dataset = ParsedNumbers();
  const Dataset shipped = Deserialize(Serialize(dataset));
  EXPECT_EQ(shipped.ToString(), dataset.ToString());
  const Rows all = Drain(dataset);
  EXPECT_EQ(Drain(shipped), all);
  for (int at = 0; at <= 8; ++at) {
    const auto saved = dataset.MakeIterator();
    Drain(*saved, at);
    const auto restored = shipped.MakeIterator();
    restored->Restore(saved->Save());
    EXPECT_EQ(Drain(*restored), Rows(all.begin() + at, all.end())) << at;
  }
}

TEST(GraphFunctionTest, WhatDoesNotFitIsToldWhereItIsDescribed) {
  Graph graph;
  const std::vector<FunctionArg> float_arg = {{DType::kFloat32, Shape()}};
  graph.DefineFunction("same", float_arg, [](Graph&, const Outputs& args) { return args; });
  try {
    Dataset::Range(3).Map(graph.FindFunction("same"));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("(int64[])"), HasSubstr("same(arg0: float32[]) -> (float32[])")));
  }
  EXPECT_THROW(Dataset::Range(3).Map(graph.FindFunction("none")), InvalidArgumentError);
  EXPECT_THROW(Dataset::Range(3).Map([](Graph&, const Outputs&) { return Outputs{}; }), InvalidArgumentError);
  EXPECT_THROW(Dataset::Range(3).Filter([](Graph&, const Outputs& args) { return args; }), InvalidArgumentError);
  EXPECT_THROW(Dataset::Range(3).Interleave([](Graph&, const Outputs& args) { return args; }), InvalidArgumentError);
}

TEST(GraphFunctionTest, ErrorsOfKernelsNameNodeAndStage) {
  const Dataset dataset = Dataset::Range(2).Batch(2).Map([](Graph& body, const Outputs& args) -> Outputs {
    return {body.Op("Reshape").Name("three").Input(args[0]).Input(ops::IntVector(body, {3})).Finish1()};
  });
  try {
    dataset.MakeIterator()->Next();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("three"), HasSubstr("(from stage Map(map_fn)")));
  }
}

}  // namespace
}  // namespace cohort::data
