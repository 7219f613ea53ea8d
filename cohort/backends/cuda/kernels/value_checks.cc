#include "cohort/backends/cuda/kernels/value_checks.h"

#include <algorithm>
#include <string_view>

namespace cohort::cuda {
namespace {

constexpr std::string_view kIndices[] = {"GatherNd",
                                         "GatherV2",
                                         "ResourceGather",
                                         "ScatterNd",
                                         "SparseSoftmaxCrossEntropyWithLogits",
                                         "TensorScatterAdd",
                                         "TensorScatterSub",
                                         "TensorScatterUpdate",
                                         "UnsortedSegmentSum"};
constexpr std::string_view kIntegers[] = {"Div", "FloorDiv", "FloorMod", "Pow", "RealDiv", "Reciprocal"};

template <size_t kSize>
bool Contains(const std::string_view (&ops)[kSize], std::string_view op) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

}  // namespace

bool ChecksValues(const Node& node) {
  const std::string& op = node.op_name();
  return Contains(kIndices, op) || (Contains(kIntegers, op) && IsInteger(node.output_dtype(0)));
}

}  // namespace cohort::cuda
