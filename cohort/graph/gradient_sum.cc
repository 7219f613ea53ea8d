#include "cohort/graph/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"

namespace cohort {
namespace {

Output Const(Graph& graph, const Tensor& value, const char* name) {
  return graph.Op("Const").Attr("dtype", value.dtype()).Attr("value", value).Name(name).Finish1();
}

Output ConcatRows(Graph& graph, const std::vector<Output>& parts) {
  const Output axis = Const(graph, Tensor::Scalar<int32_t>(0), "axis");
  return graph.Op("ConcatV2").Inputs(parts).Input(axis).Finish1();
}

// Returns the indices of all parts in one dtype. It is int64 if the dtypes differ.
std::vector<Output> AlignIndices(Graph& graph, const std::vector<Gradient>& parts) {
  std::vector<Output> indices;
  for (const Gradient& part : parts) indices.push_back(part.indices);
  const bool same = std::all_of(indices.begin(), indices.end(),
                                [&](const Output& value) { return value.dtype() == indices[0].dtype(); });
  if (same) return indices;
  for (Output& value : indices) {
    if (value.dtype() != DType::kInt64) value = graph.Op("Cast").Input(value).Attr("DstT", DType::kInt64).Finish1();
  }
  return indices;
}

// Sums the parts on the device of the first part.
Gradient SumHere(const std::vector<Gradient>& parts) {
  if (parts.size() == 1) return parts[0];
  Graph& graph = parts[0].values.graph();
  DeviceScope device(graph, parts[0].values.node->device());
  std::vector<Output> values;
  if (std::all_of(parts.begin(), parts.end(), [](const Gradient& part) { return part.is_sparse(); })) {
    for (const Gradient& part : parts) values.push_back(part.values);
    const Output rows = ConcatRows(graph, values);
    return Gradient(rows, ConcatRows(graph, AlignIndices(graph, parts)), parts[0].dense_shape);
  }
  for (const Gradient& part : parts) values.push_back(ToDense(part));
  return Gradient(graph.Op("AddN").Inputs(values).Finish1());
}

// Returns dense_shape[0] as a scalar.
Output NumRows(Graph& graph, const Output& dense_shape) {
  const auto shape = ConstantValue(dense_shape);
  if (shape && shape->num_elements() > 0) {
    const Tensor rows = shape->dtype() == DType::kInt32 ? Tensor::Scalar(shape->data<int32_t>()[0])
                                                        : Tensor::Scalar(shape->data<int64_t>()[0]);
    return Const(graph, rows, "num_segments");
  }
  const Output begin = Const(graph, Tensor::Vector<int32_t>({0}), "begin");
  const Output one = Const(graph, Tensor::Vector<int32_t>({1}), "end");
  return graph.Op("StridedSlice")
      .Input(dense_shape)
      .Input(begin)
      .Input(one)
      .Input(one)
      .Attr("shrink_axis_mask", 1)
      .Name("num_segments")
      .Finish1();
}

}  // namespace

Gradient SumGradients(const std::vector<Gradient>& parts) {
  std::vector<std::pair<std::string, std::vector<Gradient>>> by_device;
  for (const Gradient& part : parts) {
    const std::string& device = part.values.node->device();
    const auto it =
        std::find_if(by_device.begin(), by_device.end(), [&](const auto& row) { return row.first == device; });
    if (it != by_device.end()) {
      it->second.push_back(part);
    } else {
      by_device.push_back({device, {part}});
    }
  }
  std::vector<Gradient> sums;
  for (const auto& [device, here] : by_device) sums.push_back(SumHere(here));
  return SumHere(sums);
}

Output ToDense(const Gradient& gradient) {
  if (!gradient.exists()) {
    throw InvalidArgumentError(
        StrCat("[graph] ToDense: expected a gradient; got none",
               gradient.why_none.empty() ? std::string() : StrCat(", because ", gradient.why_none),
               "; leave out what has no gradient (Gradient::exists), or let the loss use it"));
  }
  if (!gradient.is_sparse()) return gradient.values;
  Graph& graph = gradient.values.graph();
  return graph.Op("UnsortedSegmentSum")
      .Input(gradient.values)
      .Input(gradient.indices)
      .Input(NumRows(graph, gradient.dense_shape))
      .Finish1();
}

}  // namespace cohort
