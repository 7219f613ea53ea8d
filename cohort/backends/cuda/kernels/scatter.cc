#include "cohort/backends/cuda/kernels/scatter.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_kernels.h"

namespace cohort::cuda {
namespace {

constexpr int kVariable = 0, kIndices = 1, kUpdates = 2, kInputs = 3;  // inputs, and their number

ScatterOp OpOf(std::string_view op) {
  if (op == "ResourceScatterAdd") return ScatterOp::kAdd;
  return op == "ResourceScatterSub" ? ScatterOp::kSub : ScatterOp::kPut;
}

// Row indices[i] of the variable = op(row, updates[i]); a scalar update is the same for all elements. Or several such
// updates, of different variables.
class ScatterKernel final : public OpKernel {
 public:
  ScatterKernel(const KernelConstruction& c, ScatterOp op, size_t updates)
      : op_(op), updates_(updates), dtype_(c.attr<DType>("dtype")), range_(RangeOfRows(c.node)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    std::vector<RowUpdate> updates;
    for (size_t u = 0; u < updates_; ++u) {
      auto& variable = ResourceOf<VariableResource>(Input(ctx, u, kVariable));
      CheckVariableDType(variable, dtype_);
      updates.push_back({{&variable}, &Input(ctx, u, kIndices)});
    }
    UpdateRows(
        call, updates, range_,
        [&](std::span<const RowChange> changes, const uint64_t* error) {
          std::vector<ScatterUpdate> scatters;
          for (const RowChange& change : changes) {
            const Tensor& values = Input(ctx, change.update, kUpdates);
            scatters.push_back(
                {change.values[0].raw_data(), values.raw_data(), values.shape().IsScalar(), change.rows});
          }
          LaunchScatters(call.driver(), call.stream(), op_, ElementTypeOf(dtype_), error, scatters.data(),
                         static_cast<int>(scatters.size()));
        },
        [&](size_t u, std::span<const Tensor> values) {
          CheckUpdates(*updates[u].variables[0], values[0].shape(), *updates[u].indices, Input(ctx, u, kUpdates));
        });
  }

 private:
  static const Tensor& Input(const KernelContext& ctx, size_t update, int input) {
    return ctx.input(static_cast<int>(update) * kInputs + input);
  }

  static void CheckUpdates(const VariableResource& variable, const Shape& whole, const Tensor& indices,
                           const Tensor& updates) {
    if (whole.rank() < 1) {
      throw InvalidArgumentError(
          StrCat("[kernels/state] expected a variable with rows; '", variable.name(), "' is a scalar"));
    }
    const Shape expected = indices.shape().Concat(whole.Sub(1, whole.rank()));
    if (!updates.shape().IsScalar() && updates.shape() != expected) {
      throw InvalidArgumentError(StrCat("[kernels/state] expected updates of shape ", expected, " for variable '",
                                        variable.name(), "'; got ", updates.shape()));
    }
  }

  const ScatterOp op_;
  const size_t updates_;
  const DType dtype_;
  const IndexRange range_;
};

}  // namespace

bool IsScatter(std::string_view op) {
  return std::find(std::begin(kScatterOps), std::end(kScatterOps), op) != std::end(kScatterOps);
}

std::unique_ptr<OpKernel> MakeScatter(const KernelConstruction& c, std::string_view op, size_t updates) {
  return std::make_unique<ScatterKernel>(c, OpOf(op), updates);
}

}  // namespace cohort::cuda
