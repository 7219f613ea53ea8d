// The ops of devices of type "GPU" whose work is done on the host, each with its reason. The list is complete: an op of
// the CPU's that is neither here nor has a kernel of its own cannot run on a GPU, and a kernel that all types of
// devices have in common must be here (on_host_test.cc). Besides, a kernel leaves nodes whose inputs are strings to the
// CPU's kernel, because strings lie in host memory on every device.
#include "cohort/backends/cuda/kernels/on_host.h"

#include <string>

#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"

namespace cohort::cuda {
namespace {

using enum WorkerOnHost;

constexpr std::string_view kCategory = "it makes an index of a value that was just read on the host, often of a string";
constexpr std::string_view kSampler =
    "how many draws it takes depends on those before; it draws few numbers, in the order of its seed";
constexpr std::string_view kAccumulator = "an accumulator adds gradients of several workers in the memory of the task";
constexpr std::string_view kQueue =
    "a queue keeps its elements in host memory, where other steps and threads take them";
constexpr std::string_view kDataset = "datasets read files and call functions of the program";
constexpr std::string_view kFile = "it reads or writes a file, or a snapshot for one";
constexpr std::string_view kText = "it reads strings, which lie in host memory on every device";
constexpr std::string_view kImageFile = "libjpeg and libpng read and write bytes of files on the host";
constexpr std::string_view kOldModel =
    "only models from before batch normalization have it, and it has no card's kernel yet";
constexpr std::string_view kSummary = "it writes a text for a file";
constexpr std::string_view kClock = "the clock of a task's steps is in host memory, and it computes little";
constexpr std::string_view kCall = "it only starts the nodes of a function, which have devices of their own";
constexpr std::string_view kTransport =
    "it only moves values between devices and tasks, through memory that the plan chooses";
constexpr std::string_view kCollective = "it only starts the collective, which may reduce in the memory of cards";
constexpr std::string_view kTable = "a table keeps its keys, often strings, in host memory";
constexpr std::string_view kList = "it only passes tensors on, which stay where they are";

constexpr OpOnHost kOnHost[] = {
    {"AsString", kCpuKernel, "its results are strings, which lie in host memory on every device"},
    {"Bucketize", kCpuKernel, kCategory},
    {"DecodeCSV", kCpuKernel, kText},
    {"DecodeImage", kCpuKernel, kImageFile},
    {"DecodeJpeg", kCpuKernel, kImageFile},
    {"DecodePng", kCpuKernel, kImageFile},
    {"DecodeRaw", kCpuKernel, kText},
    {"DynamicPartition", kCpuKernel, "the shapes of its outputs depend on the data"},
    {"DynamicStitch", kCpuKernel, "the shape of its output depends on the data"},
    {"EncodeJpeg", kCpuKernel, kImageFile},
    {"EncodePng", kCpuKernel, kImageFile},
    {"ImageProjectiveTransformV3Grad", kCpuKernel,
     "only the transforms say which pixels add to one; images are mostly transformed before there are weights"},
    {"InvertPermutation", kCpuKernel, "it has to know of each number whether it is there once; permutations are short"},
    {"LRN", kCpuKernel, kOldModel},
    {"LRNGrad", kCpuKernel, kOldModel},
    {"LogUniformCandidateSampler", kCpuKernel, kSampler},
    {"LowerBound", kCpuKernel, kCategory},
    {"Multinomial", kCpuKernel, kSampler},
    {"ReadFile", kCpuKernel, kFile},
    {"RegexFullMatch", kCpuKernel, kText},
    {"RegexReplace", kCpuKernel, kText},
    {"SparseCross", kCpuKernel, kCategory},
    {"StaticRegexFullMatch", kCpuKernel, kText},
    {"StaticRegexReplace", kCpuKernel, kText},
    {"StringJoin", kCpuKernel, kText},
    {"StringLength", kCpuKernel, kText},
    {"StringLower", kCpuKernel, kText},
    {"StringNGrams", kCpuKernel, kText},
    {"StringSplitV2", kCpuKernel, kText},
    {"StringStrip", kCpuKernel, kText},
    {"SegmentMean", kCpuKernel, "the shape of its output depends on the data"},
    {"SegmentSum", kCpuKernel, "the shape of its output depends on the data"},
    {"SparseToDense", kCpuKernel, "it checks the order of its indices, which come from an input pipeline"},
    {"StringToHashBucketFast", kCpuKernel, kCategory},
    {"StringToHashBucketStrong", kCpuKernel, kCategory},
    {"StringToNumber", kCpuKernel, kText},
    {"StringUpper", kCpuKernel, kText},
    {"Substr", kCpuKernel, kText},
    {"UnicodeDecode", kCpuKernel, kText},
    {"UnicodeEncode", kCpuKernel, kText},
    {"UniformCandidateSampler", kCpuKernel, kSampler},
    {"Unique", kCpuKernel, "the shape of its outputs depends on the data"},
    {"UniqueWithCounts", kCpuKernel, "the shape of its outputs depends on the data"},
    {"UpperBound", kCpuKernel, kCategory},
    {"VocabularyLookup", kCpuKernel, kCategory},
    {"Where", kCpuKernel, "the shape of its output depends on the data"},

    {"RandomShuffle", kBoth, "each swap of the order depends on those before it; the card moves the rows"},

    {"AccumulatorApplyGradient", kAnyDevice, kAccumulator},
    {"AccumulatorNumAccumulated", kAnyDevice, kAccumulator},
    {"AccumulatorNumStale", kAnyDevice, kAccumulator},
    {"AccumulatorSetGlobalStep", kAnyDevice, kAccumulator},
    {"AccumulatorTakeGradient", kAnyDevice, kAccumulator},
    {"Assert", kAnyDevice, "it throws an exception with the values that it is given"},
    {"ChiefRecord", kAnyDevice, kClock},
    {"ChiefRecordHold", kAnyDevice, kClock},
    {"ChiefRecordRead", kAnyDevice, kClock},
    {"CollectiveBarrier", kAnyDevice, kCollective},
    {"CollectiveBcastRecv", kAnyDevice, kCollective},
    {"CollectiveBcastSend", kAnyDevice, kCollective},
    {"CollectiveGather", kAnyDevice, kCollective},
    {"CollectiveReduce", kAnyDevice, kCollective},
    {"CollectiveReduceScatter", kAnyDevice, kCollective},
    {"ConditionalAccumulator", kAnyDevice, kAccumulator},
    {"DatasetFromDescription", kAnyDevice, kDataset},
    {"EmptyTensorList", kAnyDevice, kList},
    {"FIFOQueueV2", kAnyDevice, kQueue},
    {"HashTableV2", kAnyDevice, kTable},
    {"HistogramSummary", kAnyDevice, kSummary},
    {"ImageSummary", kAnyDevice, kSummary},
    {"If", kAnyDevice, kCall},
    {"InitializeTableFromTextFileV2", kAnyDevice, kTable},
    {"InitializeTableV2", kAnyDevice, kTable},
    {"IteratorGetNext", kAnyDevice, kDataset},
    {"IteratorGetNextAsOptional", kAnyDevice, kDataset},
    {"IteratorV2", kAnyDevice, kDataset},
    {"LookupTableFindV2", kAnyDevice, kTable},
    {"LookupTableImportV2", kAnyDevice, kTable},
    {"LookupTableSizeV2", kAnyDevice, kTable},
    {"MakeIterator", kAnyDevice, kDataset},
    {"MergeSummary", kAnyDevice, kSummary},
    {"MutableHashTableV2", kAnyDevice, kTable},
    {"NoOp", kAnyDevice, "it computes nothing"},
    {"OptionalFromValue", kAnyDevice, kDataset},
    {"OptionalGetValue", kAnyDevice, kDataset},
    {"OptionalHasValue", kAnyDevice, kDataset},
    {"OptionalNone", kAnyDevice, kDataset},
    {"PartitionedCall", kAnyDevice, kCall},
    {"Print", kAnyDevice, "it prints the values that it is given"},
    {"PrintV2", kAnyDevice, "it prints the values that it is given"},
    {"QueueCloseV2", kAnyDevice, kQueue},
    {"QueueDequeueManyV2", kAnyDevice, kQueue},
    {"QueueDequeueUpToV2", kAnyDevice, kQueue},
    {"QueueDequeueV2", kAnyDevice, kQueue},
    {"QueueEnqueueManyV2", kAnyDevice, kQueue},
    {"QueueEnqueueV2", kAnyDevice, kQueue},
    {"QueueFailSession", kAnyDevice, kQueue},
    {"QueueIsClosedV2", kAnyDevice, kQueue},
    {"QueueReset", kAnyDevice, kQueue},
    {"QueueSizeV2", kAnyDevice, kQueue},
    {"RandomShuffleQueueV2", kAnyDevice, kQueue},
    {"ResourceAccumulatorApplyGradient", kAnyDevice, kAccumulator},
    {"ResourceAccumulatorNumAccumulated", kAnyDevice, kAccumulator},
    {"ResourceAccumulatorSetGlobalStep", kAnyDevice, kAccumulator},
    {"ResourceAccumulatorTakeGradient", kAnyDevice, kAccumulator},
    {"ResourceConditionalAccumulator", kAnyDevice, kAccumulator},
    {"RestoreV2", kAnyDevice, kFile},
    {"SaveV2", kAnyDevice, kFile},
    {"ScalarSummary", kAnyDevice, kSummary},
    {"SparseAccumulatorApplyGradient", kAnyDevice, kAccumulator},
    {"SparseAccumulatorTakeGradient", kAnyDevice, kAccumulator},
    {"SparseConditionalAccumulator", kAnyDevice, kAccumulator},
    {"StatefulPartitionedCall", kAnyDevice, kCall},
    {"StatelessIf", kAnyDevice, kCall},
    {"StatelessWhile", kAnyDevice, kCall},
    {"StepClock", kAnyDevice, kClock},
    {"StepClockJoin", kAnyDevice, kClock},
    {"StepClockTakeStaleness", kAnyDevice, kClock},
    {"StepClockTick", kAnyDevice, kClock},
    {"TensorListFromTensor", kAnyDevice, kList},
    {"TensorListGetItem", kAnyDevice, kList},
    {"TensorListLength", kAnyDevice, kList},
    {"TensorListPopBack", kAnyDevice, kList},
    {"TensorListPushBack", kAnyDevice, kList},
    {"TensorListReserve", kAnyDevice, kList},
    {"TensorListSetItem", kAnyDevice, kList},
    {"TensorListStack", kAnyDevice, "only loops of loaded graphs make such lists; it copies their elements together"},
    {"While", kAnyDevice, kCall},
    {"_Arg", kAnyDevice, kTransport},
    {"_CheckpointProbe", kAnyDevice, kFile},
    {"_IteratorGetAt", kAnyDevice, kDataset},
    {"_IteratorRestart", kAnyDevice, kDataset},
    {"_IteratorRestore", kAnyDevice, kDataset},
    {"_IteratorSave", kAnyDevice, kDataset},
    {"_Recv", kAnyDevice, kTransport},
    {"_Retval", kAnyDevice, kTransport},
    {"_Send", kAnyDevice, kTransport},
    {"_SnapshotDrop", kAnyDevice, kFile},
    {"_SnapshotRead", kAnyDevice, kFile},
    {"_SnapshotReadStrings", kAnyDevice, kFile},
    {"_SnapshotTake", kAnyDevice, kFile},
    {"_SnapshotWrite", kAnyDevice, kFile},
    {"_ToDevice", kAnyDevice, kTransport},
    {"_ToHost", kAnyDevice, kTransport},
};

}  // namespace

std::span<const OpOnHost> OpsOnHost() { return kOnHost; }

void RegisterKernelsOnHost(KernelRegistry& registry) {
  for (const OpOnHost& entry : kOnHost) {
    if (entry.worker != kCpuKernel) continue;
    registry.Register(std::string(entry.op), kGpu,
                      [&registry](const KernelConstruction& c) { return MakeHostFallback(registry, c); });
  }
}

}  // namespace cohort::cuda
