// Kernels that work for every kind of VariableResource: VarHandleOp, ReadVariableOp and VariableShape. Each backend
// registers them for its type of variable V: VariableResource or a subclass. V needs a constructor with the arguments
// (name, dtype, shape, allocator, container).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/device/variable_resource.h"

namespace cohort {

// VarHandleOp: outputs the handle of the variable with the node's container and name. Makes the variable if there is
// none. Throws InvalidArgumentError if the variable has another dtype than the node's, or a shape that is not
// compatible with the node's. Throws FailedPreconditionError if the resource of this name is not a V. The kernel keeps
// the handle. It looks up the variable again only after a Clear of the ResourceManager.
template <typename V>
class VarHandleKernel final : public OpKernel {
 public:
  explicit VarHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")),
        name_(c.attr<std::string>("shared_name")),
        dtype_(c.attr<DType>("dtype")),
        shape_(c.attr<Shape>("shape")) {
    if (container_.empty()) container_ = ResourceManager::kDefaultContainer;
    if (name_.empty()) name_ = c.node.name();
  }

  void Compute(KernelContext& ctx) override {
    ResourceManager& resources = ctx.device().resources();
    const int64_t epoch = resources.epoch();  // read before the look-up, so that a later Clear is seen the next time
    MutexLock lock(mu_);
    if (!handle_.defined() || epoch != epoch_) {
      handle_ = MakeResourceHandle(Find(resources, ctx.device().allocator()));
      epoch_ = epoch;
    }
    ctx.SetOutput(0, handle_);
  }

 private:
  std::shared_ptr<V> Find(ResourceManager& resources, Allocator& allocator) const {
    auto variable = resources.LookupOrCreate<V>(
        container_, name_, [&] { return std::make_shared<V>(name_, dtype_, shape_, allocator, container_); });
    if (variable->dtype() != dtype_ || !variable->shape().IsCompatibleWith(shape_)) {
      throw InvalidArgumentError(StrCat("[kernels/state] expected variable '", name_, "' as ", dtype_, shape_,
                                        "; the one in container '", container_, "' is ", variable->dtype(),
                                        variable->shape(), "; clear the container or use another name"));
    }
    return variable;
  }

  std::string container_;
  std::string name_;
  const DType dtype_;
  const Shape shape_;
  Mutex mu_;
  Tensor handle_ COHORT_GUARDED_BY(mu_);
  int64_t epoch_ COHORT_GUARDED_BY(mu_) = -1;
};

// Throws InvalidArgumentError if the variable's dtype is not `dtype`.
inline void CheckVariableDType(const VariableResource& variable, DType dtype) {
  if (variable.dtype() != dtype) [[unlikely]] {
    throw InvalidArgumentError(
        StrCat("[kernels/state] expected ", dtype, "; variable '", variable.name(), "' is ", variable.dtype()));
  }
}

// ReadVariableOp: outputs the variable's value. Throws InvalidArgumentError if the input is not the handle of a V or if
// the variable's dtype is not the node's, and FailedPreconditionError if the variable has no value.
template <typename V>
void ReadVariable(KernelContext& ctx) {
  V& variable = ResourceOf<V>(ctx.input(0));
  Tensor value = variable.Read();
  CheckVariableDType(variable, ctx.node().output_dtype(0));
  ctx.SetOutput(0, std::move(value));
}

// VariableShape: outputs the shape of the variable, in host memory. If the declared shape has unknown dimensions,
// outputs the shape of the value, or throws FailedPreconditionError if the variable has no value.
template <typename V>
void ShapeOfVariable(KernelContext& ctx) {
  V& variable = ResourceOf<V>(ctx.input(0));
  const Shape shape = variable.shape().IsFullyDefined() ? variable.shape() : variable.value_shape();
  Tensor& out = ctx.AllocateOutput(0, Shape{shape.rank()});
  if (out.dtype() == DType::kInt64) {
    std::copy(shape.dims().begin(), shape.dims().end(), out.template data<int64_t>());
    return;
  }
  for (int i = 0; i < shape.rank(); ++i) out.template data<int32_t>()[i] = static_cast<int32_t>(shape.dim(i));
}

}  // namespace cohort
