// Kernels of variables: assigning, reading by rows (Gather), and updates by addition, subtraction or replacement, of
// the whole value (UpdateKernel) or of some rows (ScatterKernel).
#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/cpu/kernels/wrapping.h"
#include "cohort/device/kernel.h"
#include "cohort/device/variable_kernels.h"

namespace cohort {
namespace {

CpuVariable& VariableAt(KernelContext& ctx, int i) { return ResourceOf<CpuVariable>(ctx.input(i)); }

// The variable takes the value's buffer if nothing else uses it. A constant or a feed stays with its owner, and a
// buffer in a step's arena ends with the step, so these are copied.
void Assign(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  const bool own = value.OwnsBufferAlone() && value.raw_data() == value.buffer()->data();
  VariableAt(ctx, 0).Assign(own ? value : value.Clone());
}

void IsInitialized(KernelContext& ctx) {
  *ctx.AllocateOutput(0, Shape()).data<bool>() = VariableAt(ctx, 0).initialized();
}

void Gather(KernelContext& ctx) {
  CpuVariable& variable = VariableAt(ctx, 0);
  CheckVariableDType(variable, ctx.node().output_dtype(0));
  ctx.SetOutput(0, variable.Gather(ctx.input(1), ctx.allocator()));
}

template <typename T>
struct Add {
  static COHORT_INLINE T Apply(T a, T b) {
    return static_cast<T>(cpu::Wrapping<cpu::Wide<T>>::Add(static_cast<cpu::Wide<T>>(a), static_cast<cpu::Wide<T>>(b)));
  }
};
template <typename T>
struct Sub {
  static COHORT_INLINE T Apply(T a, T b) {
    return static_cast<T>(cpu::Wrapping<cpu::Wide<T>>::Sub(static_cast<cpu::Wide<T>>(a), static_cast<cpu::Wide<T>>(b)));
  }
};
template <typename T>
struct Put {
  static COHORT_INLINE T Apply(T, T b) { return b; }
};

using ChangeFn = void (*)(const void* old, const void* value, void* out, int64_t n);

// `old` and `out` may be the same memory.
template <typename T, template <typename> class Op>
struct ChangeBody {
  static COHORT_INLINE void Run(const void* old, const void* value, void* out, int64_t n) {
    const T* a = static_cast<const T*>(old);
    const T* b = static_cast<const T*>(value);
    T* result = static_cast<T*>(out);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = Op<T>::Apply(a[i], b[i]);
  }
};

template <template <typename> class Op>
ChangeFn ChangeFor(const KernelConstruction& c) {
  return cpu::ForNumbers(c.attr<DType>("dtype"), c.node.op_name(),
                         []<typename T>(T) -> ChangeFn { return cpu::Widest<ChangeBody<T, Op>>(); });
}

// variable = Op(variable, value).
template <template <typename> class Op>
class UpdateKernel final : public OpKernel {
 public:
  explicit UpdateKernel(const KernelConstruction& c)
      : dtype_(c.attr<DType>("dtype")), size_(static_cast<int64_t>(DTypeSize(dtype_))), change_(ChangeFor<Op>(c)) {}

  void Compute(KernelContext& ctx) override {
    CpuVariable& variable = VariableAt(ctx, 0);
    CheckVariableDType(variable, dtype_);
    const Tensor& value = ctx.input(1);
    variable.Update([&](const Tensor& old, Tensor& out) {
      if (old.shape() != value.shape()) {
        throw InvalidArgumentError(StrCat("[kernels/state] expected a change of shape ", old.shape(), " for variable '",
                                          variable.name(), "'; got ", value.shape()));
      }
      cpu::ForBlocks(value.num_elements(), ctx.num_threads(), [&](int64_t begin, int64_t end) {
        const int64_t at = begin * size_;
        change_(static_cast<const char*>(old.raw_data()) + at, static_cast<const char*>(value.raw_data()) + at,
                static_cast<char*>(out.raw_data()) + at, end - begin);
      });
    });
  }

 private:
  const DType dtype_;
  const int64_t size_;
  const ChangeFn change_;
};

// Row indices[i] of the variable = Op(row, updates[i]); a scalar update is the same for all elements.
template <template <typename> class Op>
class ScatterKernel final : public OpKernel {
 public:
  explicit ScatterKernel(const KernelConstruction& c)
      : dtype_(c.attr<DType>("dtype")), size_(static_cast<int64_t>(DTypeSize(dtype_))), change_(ChangeFor<Op>(c)) {}

  void Compute(KernelContext& ctx) override {
    CpuVariable& variable = VariableAt(ctx, 0);
    CheckVariableDType(variable, dtype_);
    const Tensor& indices = ctx.input(1);
    const Tensor& updates = ctx.input(2);
    if (indices.num_elements() == 0) return;
    const int64_t row = RowElements(variable, indices, updates);
    const bool scalar = updates.shape().IsScalar() && row * indices.num_elements() != 1;
    const auto* from = static_cast<const char*>(updates.raw_data());
    variable.UpdateRows(indices, {}, [&](int64_t position, std::span<void* const> rows) {
      if (!scalar) {
        change_(rows[0], from + position * row * size_, rows[0], row);
        return;
      }
      auto* to = static_cast<char*>(rows[0]);
      for (int64_t i = 0; i < row; ++i) change_(to + i * size_, from, to + i * size_, 1);
    });
  }

 private:
  static int64_t RowElements(const CpuVariable& variable, const Tensor& indices, const Tensor& updates) {
    const Shape whole = variable.shape().IsFullyDefined() ? variable.shape() : variable.value_shape();
    if (whole.rank() < 1) {
      throw InvalidArgumentError(
          StrCat("[kernels/state] expected a variable with rows; '", variable.name(), "' is a scalar"));
    }
    const Shape row = whole.Sub(1, whole.rank());
    const Shape expected = indices.shape().Concat(row);
    if (!updates.shape().IsScalar() && updates.shape() != expected) {
      throw InvalidArgumentError(StrCat("[kernels/state] expected updates of shape ", expected, " for variable '",
                                        variable.name(), "'; got ", updates.shape()));
    }
    return row.num_elements();
  }

  const DType dtype_;
  const int64_t size_;
  const ChangeFn change_;
};

}  // namespace

void RegisterStateKernels(KernelRegistry& registry) {
  registry.Register<VarHandleKernel<CpuVariable>>("VarHandleOp", "CPU");
  registry.RegisterFn("ReadVariableOp", "CPU", ReadVariable<CpuVariable>);
  registry.RegisterFn("AssignVariableOp", "CPU", Assign);
  registry.RegisterFn("VarIsInitializedOp", "CPU", IsInitialized);
  registry.RegisterFn("VariableShape", "CPU", ShapeOfVariable<CpuVariable>);
  registry.RegisterFn("ResourceGather", "CPU", Gather);
  registry.Register<UpdateKernel<Add>>("AssignAddVariableOp", "CPU");
  registry.Register<UpdateKernel<Sub>>("AssignSubVariableOp", "CPU");
  registry.Register<ScatterKernel<Add>>("ResourceScatterAdd", "CPU");
  registry.Register<ScatterKernel<Sub>>("ResourceScatterSub", "CPU");
  registry.Register<ScatterKernel<Put>>("ResourceScatterUpdate", "CPU");
}

}  // namespace cohort
