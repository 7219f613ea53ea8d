// Tests that every op has all its parts. Each test names all ops that lack a part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/op_def.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using ::testing::IsEmpty;

// Returns the names of ops for which `lacks` is true. Ops whose names begin with "_" are parts of the runtime and are
// left out.
template <typename Lacks>
std::vector<std::string> Offenders(const Lacks& lacks) {
  std::vector<std::string> names;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (op->name()[0] != '_' && lacks(*op)) names.push_back(op->name());
  }
  return names;
}

// Returns the ops that have a case of their own.
const std::set<std::string>& OpsWithCases(bool differentiable) {
  static const auto* const sets = [] {
    auto* made = new std::array<std::set<std::string>, 2>;
    for (const OpCase& op_case : AllOpCases()) {
      const CaseGraph graph(op_case, false);
      for (const Node* node : graph.graph.nodes()) {
        if (node->op_name() != op_case.op) continue;
        (*made)[0].insert(op_case.op);
        if (!op_case.differentiable.empty()) (*made)[1].insert(op_case.op);
      }
    }
    return made;
  }();
  return (*sets)[differentiable ? 1 : 0];
}

TEST(RegistryTest, EveryOpIsDocumented) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return op.doc().empty(); }), IsEmpty());
}

TEST(RegistryTest, EveryOpHasAShapeRule) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !op.shape_fn(); }), IsEmpty());
}

TEST(RegistryTest, EveryOpHasAGradientOrSaysWhyNot) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !op.gradient_fn() && op.not_differentiable_reason().empty(); }),
              IsEmpty());
}

// This is the reviewed list. If an op without a gradient is not in it, either the gradient was forgotten, or a reviewer
// has to add the op.
TEST(RegistryTest, TheOpsWithoutAGradientAreThese) {
  std::istringstream reviewed(
      // The outputs are truth values or positions.
      "All Any ArgMax ArgMin Equal Greater GreaterEqual InTopKV2 InvertPermutation IsFinite IsInf IsNan Less "
      "LessEqual LogicalAnd LogicalNot LogicalOr NotEqual Unique UniqueWithCounts VarIsInitializedOp Where "
      // The outputs are indices of categories, or texts.
      "AsString Bucketize DecodeCSV DecodeRaw LowerBound SparseCross StringToHashBucketFast StringToHashBucketStrong "
      "UpperBound "
      "VocabularyLookup "
      // The inputs are texts.
      "RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace StringJoin StringLength StringLower "
      "StringNGrams StringSplitV2 StringStrip StringToNumber StringUpper Substr UnicodeDecode UnicodeEncode "
      // The inputs or outputs are files.
      "DecodeImage DecodeJpeg DecodePng EncodeJpeg EncodePng ReadFile "
      // The outputs are constant between their steps.
      "Ceil Floor FloorDiv Round "
      // The outputs are shapes, positions, or values made of these.
      "BroadcastGradientArgs ConcatOffset OneHot OnesLike Range Rank Shape Size VariableShape ZerosLike "
      // The ops have no inputs that are numbers.
      "Const EmptyTensorList LogUniformCandidateSampler Multinomial NoOp Placeholder UniformCandidateSampler "
      "RandomShuffle "
      "RandomStandardNormal RandomUniform RandomUniformInt "
      "RestoreV2 StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt "
      "StatelessRandomUniformInt StatelessTruncatedNormal TruncatedNormal VarHandleOp "
      // The ops change something, or write.
      "Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp HistogramSummary ImageSummary MergeSummary "
      "PrintV2 "
      "ResourceApplyAdagrad ResourceApplyAdagradV2 ResourceApplyAdam ResourceApplyAdamWithAmsgrad "
      "ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
      "ResourceApplyKerasAdagrad ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyRMSProp "
      "ResourceApplyWeightDecay ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate "
      "ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2 ResourceSparseApplyAdam "
      "ResourceSparseApplyCenteredRMSProp "
      "ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasAdagrad "
      "ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyRMSProp SaveV2 "
      "ScalarSummary "
      // The values come from other steps, or go to them.
      "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorNumStale AccumulatorSetGlobalStep "
      "AccumulatorTakeGradient ConditionalAccumulator FIFOQueueV2 QueueCloseV2 QueueDequeueManyV2 QueueDequeueUpToV2 "
      "QueueDequeueV2 QueueEnqueueManyV2 QueueEnqueueV2 QueueFailSession QueueIsClosedV2 QueueReset QueueSizeV2 "
      "RandomShuffleQueueV2 ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated "
      "ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient ResourceConditionalAccumulator "
      "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient SparseConditionalAccumulator "
      "ChiefRecord ChiefRecordHold ChiefRecordRead StepClock StepClockJoin StepClockTakeStaleness StepClockTick "
      // The op is a gradient, of which TensorFlow has no gradient either.
      "LRNGrad "
      // The op stops the gradient on purpose.
      "StopGradient "
      // The ops belong to groups: a gradient would belong to the whole group, and not to the graph of one member.
      "CollectiveBarrier CollectiveBcastRecv CollectiveBcastSend CollectiveGather CollectiveReduceScatter "
      // The ops hand out elements that come from outside of the graph, or hold them.
      "DatasetFromDescription IteratorGetNext IteratorGetNextAsOptional IteratorV2 MakeIterator OptionalFromValue "
      "OptionalGetValue OptionalHasValue OptionalNone "
      // The ops come with graphs that TensorFlow made, which Cohort does not train.
      "HashTableV2 InitializeTableFromTextFileV2 InitializeTableV2 LookupTableFindV2 LookupTableImportV2 "
      "LookupTableSizeV2 MutableHashTableV2 TensorListFromTensor TensorListGetItem TensorListLength "
      "TensorListReserve TensorListSetItem TensorListStack ");
  std::set<std::string> found;
  for (const std::string& op : Offenders([](const OpDef& op) { return !op.gradient_fn(); })) found.insert(op);
  const std::set<std::string> expected(std::istream_iterator<std::string>(reviewed), {});
  EXPECT_EQ(found, expected);
}

TEST(RegistryTest, EveryOpHasACpuKernel) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !KernelRegistry::Global().Has(op.name(), "CPU"); }), IsEmpty());
}

TEST(RegistryTest, EveryKernelBelongsToAnOp) {
  std::vector<std::string> strangers;
  std::vector<std::string> ops = KernelRegistry::Global().OpsOn("CPU");
  const std::vector<std::string> host_ops = KernelRegistry::Global().HostOps();
  ops.insert(ops.end(), host_ops.begin(), host_ops.end());
  for (const std::string& op : ops) {
    if (OpRegistry::Global().Find(op) == nullptr) strangers.push_back(op);
  }
  EXPECT_THAT(strangers, IsEmpty());
}

TEST(RegistryTest, EveryOpHasACase) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !OpsWithCases(false).contains(op.name()); }), IsEmpty());
}

TEST(RegistryTest, EveryGradientIsCheckedNumerically) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return op.gradient_fn() && !OpsWithCases(true).contains(op.name()); }),
              IsEmpty());
}

TEST(RegistryTest, CasesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  std::vector<std::string> repeated;
  for (const OpCase& op_case : AllOpCases()) {
    if (!names.insert(CaseName(op_case)).second) repeated.push_back(CaseName(op_case));
  }
  EXPECT_THAT(repeated, IsEmpty());
}

}  // namespace
}  // namespace cohort::testing
