#include "cohort/device/output_shapes.h"

#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"
#include "cohort/graph/constant_value.h"

namespace cohort {
namespace {

// What is known of a node that is about to run.
class RuntimeFacts final : public InputFacts {
 public:
  explicit RuntimeFacts(const KernelContext& ctx) : ctx_(ctx) {}
  int num_inputs() const override { return ctx_.num_inputs(); }
  const Shape& shape(int i) const override { return ctx_.input(i).shape(); }
  DType dtype(int i) const override { return ctx_.input(i).dtype(); }

  std::optional<Tensor> value(int i) const override {
    if (!IsReadable(i)) return std::nullopt;
    return ctx_.input(i);
  }

  Shape value_as_shape(int i) const override {
    if (IsReadable(i)) return TensorAsShape(ctx_.input(i));
    const Shape& shape = ctx_.input(i).shape();
    return shape.rank() == 1 ? Shape::UnknownDims(static_cast<int>(shape.dim(0))) : Shape::UnknownRank();
  }

  Shape handle_shape(int i) const override {
    const VariableResource* variable = VariableAt(i);
    if (variable == nullptr) return Shape::UnknownRank();
    return variable->initialized() ? variable->value_shape() : variable->shape();
  }

  DType handle_dtype(int i) const override {
    const VariableResource* variable = VariableAt(i);
    return variable == nullptr ? DType::kInvalid : variable->dtype();
  }

 private:
  // An input that the op wants in device memory counts as unknown on every device. So the result is the same on all
  // devices.
  bool IsReadable(int i) const { return ctx_.node().input_arg(i).host_memory && ctx_.input(i).space().is_host(); }

  const VariableResource* VariableAt(int i) const {
    if (ctx_.input(i).dtype() != DType::kResource) return nullptr;
    return dynamic_cast<const VariableResource*>(ResourceOfHandle(ctx_.input(i)).get());
  }

  const KernelContext& ctx_;
};

}  // namespace

std::vector<Shape> OutputShapes(const KernelContext& ctx) {
  const Node& node = ctx.node();
  const RuntimeFacts facts(ctx);
  ShapeContext context(node.attrs(), facts);
  std::vector<Shape> shapes = node.op().shape_fn()(context);
  if (shapes.size() != static_cast<size_t>(node.num_outputs())) {
    throw InternalError(StrCat("[graph] ", node.Describe(), ": the shape rule gave ", shapes.size(), " shapes for ",
                               node.num_outputs(), " outputs"));
  }
  return shapes;
}

}  // namespace cohort
