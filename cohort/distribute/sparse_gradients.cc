// Sums sparse gradients of replicas by gathering their rows.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategy.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/train/optimizer.h"

namespace cohort::distribute {
namespace {

// A table below this size is cheaper in a bucket with other gradients than in collectives of its own.
constexpr int64_t kSmallTable = 256 * 1024;

// Scopes for nodes that are added beside a gradient.
class Beside {
 public:
  Beside(Graph& graph, const std::string& device) : nowhere_(graph, nullptr), device_(graph, device) {}

 private:
  ColocateWith nowhere_;
  DeviceScope device_;
};

// Returns the numbers on which replicas agree, int64 [2]: the largest number of rows of a replica, and the largest
// index.
Output RowsAndIndex(const Gradient& gradient) {
  const Output none = ops::Const(gradient.indices.graph(), std::vector<int64_t>{-1});
  const Output index = ops::Max(ops::Concat({ops::Cast(gradient.indices, DType::kInt64), none}, 0));
  return ops::Pack({ops::Size(gradient.indices, DType::kInt64), index});
}

// Appends rows of zeros to the gradient, up to the number of rows in `rows_and_index`. Their index is one that some
// replica has. So no row without a gradient is updated; optimizers with a momentum would change it.
Gradient Padded(const Gradient& gradient, Output rows_and_index) {
  Graph& graph = rows_and_index.graph();
  const std::vector<Output> agreed = ops::Unpack(rows_and_index, 2);
  const Output rows = agreed[0];
  const Output missing = ops::Sub(rows, ops::Size(gradient.indices, DType::kInt64));
  std::vector<Output> dims = {missing};
  const Shape& shape = gradient.values.shape();
  for (int d = 1; d < shape.rank(); ++d) dims.push_back(ops::Const(graph, shape.dim(d)));
  const Output no_index = ops::Fill(ops::Pack({missing}), ops::Cast(agreed[1], gradient.indices.dtype()));
  const Output no_row = ops::Fill(ops::Pack(dims), ops::ScalarLike(gradient.values, 0));
  return Gradient(ops::Concat({gradient.values, no_row}, 0), ops::Concat({gradient.indices, no_index}, 0),
                  gradient.dense_shape);
}

}  // namespace

bool Strategy::GathersRows(const Gradient& gradient, const ops::Variable& variable) const {
  if (num_replicas_in_sync() == 1 || !gradient.is_sparse() || !variable.shape().IsFullyDefined()) return false;
  const int64_t bytes = variable.shape().num_elements() * static_cast<int64_t>(DTypeSize(variable.dtype()));
  const Shape& rows = gradient.values.shape();
  return bytes > kSmallTable && rows.has_rank() && rows.Sub(1, rows.rank()).IsFullyDefined();
}

PerReplica<Gradient> Strategy::GatherRows(const PerReplica<Gradient>& gradients) const {
  if (gradients.size() != layout_.devices.size()) {
    throw InvalidArgumentError(StrCat("[distribute] expected a gradient of each of the ", layout_.devices.size(),
                                      " replicas of this process; got ", gradients.size()));
  }
  Graph& graph = gradients[0].values.graph();
  if (!has_copies()) {
    const Beside here(graph, placer_->shared_device());
    std::vector<Output> values, indices;
    for (const Gradient& gradient : gradients) {
      values.push_back(gradient.values);
      indices.push_back(gradient.indices);
    }
    const Gradient all(ops::Concat(values, 0), ops::Concat(indices, 0), gradients[0].dense_shape);
    return PerReplica<Gradient>(gradients.size(), all);
  }
  // All members of a gather must have equally many rows, so they are padded to the largest number.
  PerReplica<Gradient> rows = gradients;
  ops::CollectiveKeys keys = replica_keys();
  keys.instance_key = ops::NextInstanceKey(graph);
  PerReplica<Output> most;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Beside here(graph, layout_.devices[r]);
    rows[r] = train::SumRepeatedRows(rows[r]);
    most.push_back(ops::CollectiveReduce(RowsAndIndex(rows[r]), keys, "Max", "Id", "rows"));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    const Beside here(graph, layout_.devices[r]);
    rows[r] = Padded(rows[r], most[r]);
  }
  for (Output Gradient::*part : {&Gradient::values, &Gradient::indices}) {
    keys.instance_key = ops::NextInstanceKey(graph);
    for (size_t r = 0; r < rows.size(); ++r) {
      const Beside here(graph, layout_.devices[r]);
      rows[r].*part = ops::CollectiveGather(rows[r].*part, keys, "gather_rows");
    }
  }
  return rows;
}

}  // namespace cohort::distribute
