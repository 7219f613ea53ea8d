// The launch of a chain of elementwise ops: one kernel, which goes through a list of steps for each element. It serves
// all chains. compiled_chain.h launches a kernel that was made for one chain.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/broadcast_dims.h"
#include "cohort/backends/cuda/kernels/chain_call.h"

namespace cohort::cuda {

// X(name of the op, function of kernels)
#define COHORT_UNARY_CHAIN_OPS(X)   \
  X(Neg, NegFunction)               \
  X(Abs, AbsFunction)               \
  X(Sign, SignFunction)             \
  X(Square, SquareFunction)         \
  X(Round, RoundFunction)           \
  X(Reciprocal, ReciprocalFunction) \
  X(Sqrt, SqrtFunction)             \
  X(Rsqrt, RsqrtFunction)           \
  X(Floor, FloorFunction)           \
  X(Ceil, CeilFunction)             \
  X(Exp, ExpFunction)               \
  X(Expm1, Expm1Function)           \
  X(Log, LogFunction)               \
  X(Log1p, Log1pFunction)           \
  X(Sin, SinFunction)               \
  X(Cos, CosFunction)               \
  X(Tan, TanFunction)               \
  X(Erf, ErfFunction)               \
  X(Relu, ReluFunction)             \
  X(Relu6, Relu6Function)           \
  X(Elu, EluFunction)               \
  X(Selu, SeluFunction)             \
  X(Sigmoid, SigmoidFunction)       \
  X(Tanh, TanhFunction)             \
  X(Softplus, SoftplusFunction)
#define COHORT_BINARY_CHAIN_OPS(X)                \
  X(AddV2, AddFunction)                           \
  X(Add, AddFunction)                             \
  X(Sub, SubFunction)                             \
  X(Mul, MulFunction)                             \
  X(RealDiv, DivFunction)                         \
  X(Div, DivFunction)                             \
  X(FloorDiv, FloorDivFunction)                   \
  X(FloorMod, FloorModFunction)                   \
  X(Maximum, MaximumFunction)                     \
  X(Minimum, MinimumFunction)                     \
  X(SquaredDifference, SquaredDifferenceFunction) \
  X(Pow, PowFunction)
// The operands of these have one shape.
#define COHORT_GRADIENT_CHAIN_OPS(X) \
  X(ReluGrad, ReluGradient)          \
  X(Relu6Grad, Relu6Gradient)        \
  X(EluGrad, EluGradient)            \
  X(SeluGrad, SeluGradient)          \
  X(SoftplusGrad, SoftplusGradient)  \
  X(SigmoidGrad, SigmoidGradient)    \
  X(TanhGrad, TanhGradient)

enum class ChainOp : uint8_t {
#define COHORT_CHAIN_OP(name, function) k##name,
  COHORT_UNARY_CHAIN_OPS(COHORT_CHAIN_OP) COHORT_BINARY_CHAIN_OPS(COHORT_CHAIN_OP)
      COHORT_GRADIENT_CHAIN_OPS(COHORT_CHAIN_OP)
#undef COHORT_CHAIN_OP
};

// An operand of a step: its number among the operands of the launch, or kRunning, which is the result of the step
// before.
struct ChainStep {
  static constexpr int8_t kRunning = -1;
  ChainOp op;
  int8_t a;
  int8_t b;  // as `a`, if the op has one operand
};

inline constexpr int kMostChainSteps = 48;

// The elements of operand o are at data[o], one for each element of the result; or there is a single one, if single[o]
// is true. If `broadcasts` is true, `dims` says where they are, and `single` does not count. After each step, a
// bfloat16 is rounded, so that the result has the bits of single ops.
struct ChainArgs {
  int steps = 0;
  ChainStep step[kMostChainSteps] = {};
  int operands = 0;
  const void* data[kMostChainOperands] = {};
  bool single[kMostChainOperands] = {};
  void* out = nullptr;  // may be the memory of an operand that has the shape of the result
  int64_t n = 0;        // elements of the result; at least 1
  bool broadcasts = false;
  BroadcastDims<kMostChainOperands> dims = {};
};
// The types are floating-point numbers.
void LaunchChain(Driver& driver, StreamHandle stream, ElementType type, const ChainArgs& args);

}  // namespace cohort::cuda
