#include "cohort/backends/cuda/kernels/binary_functions.h"
#include "cohort/backends/cuda/kernels/comparison.cu.h"
#include "cohort/backends/cuda/kernels/elements.h"

namespace cohort::cuda {
namespace {

template <typename Fn>
void OfBools(Driver& driver, StreamHandle stream, const BinaryArgs& args) {
  LaunchBinaryElements<bool, bool>(driver, stream, args, Fn());
}
template <typename Fn>
void OfNumbers(Driver& driver, StreamHandle stream, ElementType type, const BinaryArgs& args) {
  ForNumbers(type, "a comparison", [&]<typename T>(T) { LaunchBinaryElements<T, bool>(driver, stream, args, Fn()); });
}
template <typename Fn>
void OfAll(Driver& driver, StreamHandle stream, ElementType type, const BinaryArgs& args) {
  type == ElementType::kBool ? OfBools<Fn>(driver, stream, args) : OfNumbers<Fn>(driver, stream, type, args);
}

}  // namespace

void LaunchComparison(Driver& driver, StreamHandle stream, ComparisonOp op, ElementType type, const BinaryArgs& args) {
  switch (op) {
    case ComparisonOp::kEqual: return OfAll<EqualFunction>(driver, stream, type, args);
    case ComparisonOp::kNotEqual: return OfAll<NotEqualFunction>(driver, stream, type, args);
    case ComparisonOp::kLess: return OfNumbers<LessFunction>(driver, stream, type, args);
    case ComparisonOp::kLessEqual: return OfNumbers<LessEqualFunction>(driver, stream, type, args);
    case ComparisonOp::kGreater: return OfNumbers<GreaterFunction>(driver, stream, type, args);
    case ComparisonOp::kGreaterEqual: return OfNumbers<GreaterEqualFunction>(driver, stream, type, args);
    case ComparisonOp::kLogicalAnd: return OfBools<LogicalAndFunction>(driver, stream, args);
    case ComparisonOp::kLogicalOr: return OfBools<LogicalOrFunction>(driver, stream, args);
  }
}

}  // namespace cohort::cuda
