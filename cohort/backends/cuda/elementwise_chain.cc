// ElementwiseChain. A run of the chain goes through the links. It finds the shape of each value, collects steps and
// operands for a launch (ChainArgs), and launches when the chain ends or a launch has no room for more. What goes on
// behind such a launch is an operand of the next one.
#include "cohort/backends/cuda/elementwise_chain.h"

#include <optional>
#include <string_view>
#include <utility>

#include "cohort/backends/broadcast_plan.h"
#include "cohort/backends/chain_operands.h"
#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"
#include "cohort/backends/cuda/kernels/chain_ops.h"
#include "cohort/backends/cuda/kernels/compiled_chain.h"
#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// Returns whether the node is one that a chain may have, with this dtype.
bool IsChainable(const Node& node, DType dtype) {
  if (!IsFloating(dtype) || FindChainOp(node.op_name()) == nullptr || node.output_dtype(0) != dtype) return false;
  for (const Output& input : node.inputs()) {
    if (input.dtype() != dtype) return false;
  }
  return true;
}

// The plan owns it. Thread-safe: it does not change.
class ElementwiseChain final : public OpKernel {
 public:
  explicit ElementwiseChain(std::vector<ChainLink> links);
  void Compute(KernelContext& ctx) override;

 private:
  struct Link {
    const Node* node;
    const ChainOpInfo* info;
    ChainOperand a;
    ChainOperand b;  // kRunningValue if the op has one operand
  };
  class Run;

  ElementType type_;
  std::vector<Link> links_;
  ChainOperands operands_;
};

ElementwiseChain::ElementwiseChain(std::vector<ChainLink> links)
    : type_(ElementTypeOf(links.front().node->output_dtype(0))) {
  for (const ChainLink& link : links) {
    Link made{link.node, FindChainOp(link.node->op_name()), kRunningValue, kRunningValue};
    for (int k = 0; k < link.node->num_inputs(); ++k) {
      (k == 0 ? made.a : made.b) = operands_.Number(link, k);
    }
    links_.push_back(made);
  }
}

// One run of the chain. Compute owns it.
class ElementwiseChain::Run {
 public:
  Run(const ElementwiseChain& chain, KernelContext& ctx) : chain_(chain), ctx_(ctx), call_(ctx) {}

  void Start() {
    for (const Link& link : chain_.links_) {
      Shape shape = ShapeAfter(link);
      // Room for the step, its two operands, and a value to go on with.
      if (args_.steps == kMostChainSteps || args_.operands + 2 > kMostChainOperands) GoOnBehindALaunch();
      const int8_t a = Operand(link.a);
      const int8_t b = link.info->kind == ChainOpKind::kUnary ? a : Operand(link.b);
      args_.step[args_.steps++] = {link.info->op, a, b};
      running_ = std::move(shape);
    }
    int in_place = -1;
    for (int o = 0; o < args_.operands && in_place < 0; ++o) {
      if (inputs_[o] >= 0 && operands_[o]->shape() == running_) in_place = inputs_[o];
    }
    Tensor& out = in_place < 0 ? ctx_.AllocateOutput(0, running_) : ctx_.ForwardInputOrAllocate(in_place, 0, running_);
    LaunchInto(out);
  }

 private:
  const Shape& ShapeOf(int operand) const {
    return operand == kRunningValue ? running_ : chain_.operands_.TensorOf(ctx_, operand).shape();
  }

  // Returns the shape of the link's result. Throws an error that names the link's node if the shapes do not fit.
  Shape ShapeAfter(const Link& link) const {
    const Shape& a = ShapeOf(link.a);
    if (link.info->kind == ChainOpKind::kUnary) return a;
    const Shape& b = ShapeOf(link.b);
    if (a == b) return a;
    try {
      if (link.info->kind == ChainOpKind::kBroadcasts) return BroadcastShapes(a, b);
      throw InvalidArgumentError(StrCat("[kernels/activation] expected two tensors of one shape; got ", a, " and ", b));
    } catch (const Error& error) {
      const DType dtype = link.node->output_dtype(0);
      ThrowError(error.code(), StrCat(error.what(), "\n  [[", link.node->op_name(), " node '", link.node->name(),
                                      "' on ", ctx_.device().name(), ", inputs: ", dtype, a, ", ", dtype, b, "]]"));
    }
  }

  // Returns the number of the operand among those of the launch.
  int8_t Operand(int operand) {
    if (operand == kRunningValue) return args_.steps == 0 ? Add(&*kept_, -1) : ChainStep::kRunning;
    return Add(&chain_.operands_.TensorOf(ctx_, operand), operand);
  }
  int8_t Add(const Tensor* tensor, int input) {
    for (int o = 0; o < args_.operands; ++o) {
      if (operands_[o] == tensor) return static_cast<int8_t>(o);
    }
    operands_[args_.operands] = tensor;
    inputs_[args_.operands] = input;
    return static_cast<int8_t>(args_.operands++);
  }

  // Launches the steps so far into memory of their own, which is the first value of the next launch.
  void GoOnBehindALaunch() {
    Tensor value = ctx_.AllocateTemp(ctx_.node().output_dtype(0), running_);
    LaunchInto(value);
    kept_ = std::move(value);
    args_ = ChainArgs();
  }

  void LaunchInto(Tensor& out) {
    if (out.num_elements() == 0) return;
    args_.out = out.raw_data();
    args_.n = out.num_elements();
    std::array<const Shape*, kMostChainOperands> shapes;
    const Shape scalar;
    shapes.fill(&scalar);
    for (int o = 0; o < args_.operands; ++o) {
      const Tensor& operand = *operands_[o];
      args_.data[o] = operand.raw_data();
      args_.single[o] = operand.num_elements() == 1;
      args_.broadcasts = args_.broadcasts || (!args_.single[o] && operand.shape() != out.shape());
      shapes[static_cast<size_t>(o)] = &operand.shape();
    }
    if (args_.broadcasts) args_.dims = DimsOf(PlanBroadcast<kMostChainOperands>(out.shape(), shapes));
    if (LaunchCommonChain(call_.driver(), call_.stream(), chain_.type_, args_)) return;
    if (args_.n >= kCompiledChainElements &&
        LaunchCompiledChain(call_.driver(), call_.device().card(), call_.stream(), chain_.type_, args_)) {
      return;
    }
    LaunchChain(call_.driver(), call_.stream(), chain_.type_, args_);
  }

  const ElementwiseChain& chain_;
  KernelContext& ctx_;
  const CudaCall call_;
  ChainArgs args_;
  const Tensor* operands_[kMostChainOperands] = {};
  int inputs_[kMostChainOperands] = {};  // of the chain; negative for other operands
  Shape running_;                        // the shape of the running value
  std::optional<Tensor> kept_;           // the running value, if a launch has written it
};

void ElementwiseChain::Compute(KernelContext& ctx) { Run(*this, ctx).Start(); }

}  // namespace

bool CanChainElementwise(const ChainLink& producer, const ChainLink& consumer) {
  const DType dtype = producer.node->output_dtype(0);
  return IsChainable(*producer.node, dtype) && IsChainable(*consumer.node, dtype);
}

std::unique_ptr<OpKernel> MakeElementwiseChain(std::vector<ChainLink> links) {
  return std::make_unique<ElementwiseChain>(std::move(links));
}

}  // namespace cohort::cuda
