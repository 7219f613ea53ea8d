#include "cohort/backends/cuda/kernels/row_update.h"

#include <deque>
#include <utility>

#include "cohort/backends/cuda/kernels/index_check.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/variable_update.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/rows_may_be_none.h"

namespace cohort::cuda {
namespace {

// Throws if the values have no rows, or not the same number of rows.
int64_t CheckedRows(const std::vector<VariableResource*>& variables, std::span<const Tensor> values) {
  for (size_t k = 0; k < values.size(); ++k) {
    const VariableResource& variable = *variables[k];
    const Shape& shape = values[k].shape();
    if (shape.rank() < 1) {
      throw InvalidArgumentError(StrCat("[variable] expected a variable with rows of numbers; got '", variable.name(),
                                        "' of ", variable.dtype(), shape));
    }
    if (shape.dim(0) != values[0].shape().dim(0)) {
      throw InvalidArgumentError(StrCat("[variable] expected ", values[0].shape().dim(0), " rows in slot '",
                                        variable.name(), "' of variable '", variables[0]->name(), "'; got ",
                                        shape.dim(0)));
    }
  }
  return values[0].shape().dim(0);
}

// An update writes the whole variable: rows that do not change stay as they were.
void KeepOtherRows(const CudaCall& call, std::span<const Tensor> olds, std::span<Tensor> outs) {
  for (size_t k = 0; k < olds.size(); ++k) {
    if (olds[k].raw_data() == outs[k].raw_data() || olds[k].bytes() == 0) continue;
    call.driver().CopyAsync(outs[k].raw_data(), olds[k].raw_data(), olds[k].bytes(), Driver::Copy::kOnDevice,
                            call.stream());
  }
}

}  // namespace

size_t RowOrderBytes(const Tensor& indices) {
  return static_cast<size_t>(RowOrderFor(indices.num_elements()).size) * sizeof(uint64_t);
}

RowOrder EnqueueRowOrder(const CudaCall& call, const Tensor& indices, int64_t rows, Scratch& scratch) {
  const int64_t n = indices.num_elements();
  RowOrder order = RowOrderFor(n);
  if (!RowOrderFits(order, rows)) {
    throw InvalidArgumentError(StrCat("[backends/cuda] expected at most 2^41 indices, and less than 2^62 / ",
                                      order.size, " rows for them; got ", n, " indices and ", rows, " rows"));
  }
  order.keys = static_cast<uint64_t*>(scratch.data());
  LaunchRowOrder(call.driver(), call.stream(), ElementTypeOf(indices.dtype()), indices.raw_data(), n, rows, order);
  return order;
}

IndexRange RangeOfRows(const Node& node) {
  return node.has_attr(kRowsMayBeNone) && node.attr<bool>(kRowsMayBeNone) ? IndexRange::kRowsOrNone : IndexRange::kRows;
}

void UpdateRows(const CudaCall& call, const std::vector<RowUpdate>& updates, IndexRange range,
                const std::function<void(std::span<const RowChange> changes, const uint64_t* error)>& change,
                const std::function<void(size_t update, std::span<const Tensor> values)>& check) {
  std::vector<RowChange> changes;
  std::vector<VariableResource*> variables;
  std::vector<Scratch> keys;
  for (size_t u = 0; u < updates.size(); ++u) {
    const auto& [its_variables, indices] = updates[u];
    if (indices->dtype() != DType::kInt32 && indices->dtype() != DType::kInt64) {
      throw InvalidArgumentError(StrCat("[variable] expected int32 or int64 indices into variable '",
                                        its_variables[0]->name(), "'; got ", indices->dtype(), indices->shape()));
    }
    if (indices->num_elements() == 0) continue;
    variables.insert(variables.end(), its_variables.begin(), its_variables.end());
    changes.push_back({u, {}, {}});
    if (range != IndexRange::kRowsOrNone) keys.emplace_back(call, RowOrderBytes(*indices));
  }
  if (changes.empty()) return call.CountUpdate();  // an update that changes nothing
  // The word that the updates look at is that of the checks below: the step has one from the first of them on.
  UpdateVariables(call, variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs, const ErrorWord*) {
    size_t first = 0;
    for (RowChange& c : changes) {
      const size_t count = updates[c.update].variables.size();
      c.values = outs.subspan(first, count);
      check(c.update, olds.subspan(first, count));
      first += count;
    }
    std::deque<IndexReport> reports;  // until the change is enqueued, so that all have one word
    first = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      RowChange& c = changes[i];
      const auto& [its_variables, indices] = updates[c.update];
      const std::span<const Tensor> its_olds = olds.subspan(first, its_variables.size());
      first += its_variables.size();
      const int64_t rows = CheckedRows(its_variables, its_olds);
      const Shape& shape = its_olds[0].shape();
      const IndexReport& report = reports.emplace_back(call, DescribeRow(*its_variables[0], rows));
      const ElementType type = ElementTypeOf(indices->dtype());
      c.rows.indices = indices->raw_data();
      c.rows.wide = type == ElementType::kInt64;
      c.rows.n = indices->num_elements();
      c.rows.rows = rows;
      c.rows.columns = shape.Sub(1, shape.rank()).num_elements();
      LaunchIndexCheck(call.driver(), call.stream(), type, c.rows.indices, c.rows.n, rows, range, report.check());
      KeepOtherRows(call, its_olds, c.values);
      if (!keys.empty()) c.rows.order = EnqueueRowOrder(call, *indices, rows, keys[i]);
    }
    change(changes, reports.back().check().word);
  });
}

}  // namespace cohort::cuda
