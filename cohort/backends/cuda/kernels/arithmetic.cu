#include "cohort/backends/cuda/kernels/arithmetic.cu.h"
#include "cohort/backends/cuda/kernels/binary_functions.h"
#include "cohort/backends/cuda/kernels/elements.h"

namespace cohort::cuda {
namespace {

template <typename Fn>
void Run(Driver& driver, StreamHandle stream, ElementType type, const BinaryArgs& args) {
  ForNumbers(type, "arithmetic", [&]<typename T>(T) { LaunchBinaryElements<T, T>(driver, stream, args, Fn()); });
}

template <typename T>
struct AddNKernel {
  AddNArgs args;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < args.n; i += t.step()) {
      Wide<T> sum = At(0, i);
      for (int k = 1; k < args.count; ++k) sum = AddOf(sum, At(k, i));
      static_cast<T*>(args.out)[i] = static_cast<T>(sum);
    }
  }
  COHORT_KERNEL Wide<T> At(int k, int64_t i) const {
    return static_cast<Wide<T>>(static_cast<const T*>(args.operands[k])[i]);
  }
};

}  // namespace

void LaunchArithmetic(Driver& driver, StreamHandle stream, ArithmeticOp op, ElementType type, const BinaryArgs& args) {
  switch (op) {
    case ArithmeticOp::kAdd: return Run<AddFunction>(driver, stream, type, args);
    case ArithmeticOp::kSub: return Run<SubFunction>(driver, stream, type, args);
    case ArithmeticOp::kMul: return Run<MulFunction>(driver, stream, type, args);
    case ArithmeticOp::kDiv: return Run<DivFunction>(driver, stream, type, args);
    case ArithmeticOp::kFloorDiv: return Run<FloorDivFunction>(driver, stream, type, args);
    case ArithmeticOp::kFloorMod: return Run<FloorModFunction>(driver, stream, type, args);
    case ArithmeticOp::kMaximum: return Run<MaximumFunction>(driver, stream, type, args);
    case ArithmeticOp::kMinimum: return Run<MinimumFunction>(driver, stream, type, args);
    case ArithmeticOp::kSquaredDifference: return Run<SquaredDifferenceFunction>(driver, stream, type, args);
    case ArithmeticOp::kPow: return Run<PowFunction>(driver, stream, type, args);
  }
}

void LaunchAddN(Driver& driver, StreamHandle stream, ElementType type, const AddNArgs& args) {
  ForNumbers(type, "AddN", [&]<typename T>(T) { Launch(driver, stream, SizeFor(args.n), AddNKernel<T>{args}); });
}

}  // namespace cohort::cuda
