#include <cmath>

#include "cohort/backends/cuda/kernels/elements.h"
#include "cohort/backends/cuda/kernels/special_functions.cu.h"

namespace cohort::cuda {
namespace {

// Declares a function `name` of one element x, or of two elements x and y.
#define COHORT_ONE_ELEMENT(name, result) \
  struct name {                          \
    template <typename W>                \
    COHORT_KERNEL static W Apply(W x) {  \
      return result;                     \
    }                                    \
  }
#define COHORT_TWO_ELEMENTS(name, result)    \
  struct name {                              \
    template <typename W>                    \
    COHORT_KERNEL static W Apply(W x, W y) { \
      return result;                         \
    }                                        \
  }

COHORT_ONE_ELEMENT(AsinFunction, std::asin(x));
COHORT_ONE_ELEMENT(AcosFunction, std::acos(x));
COHORT_ONE_ELEMENT(AtanFunction, std::atan(x));
COHORT_ONE_ELEMENT(SinhFunction, std::sinh(x));
COHORT_ONE_ELEMENT(CoshFunction, std::cosh(x));
COHORT_ONE_ELEMENT(AsinhFunction, std::asinh(x));
COHORT_ONE_ELEMENT(AcoshFunction, std::acosh(x));
COHORT_ONE_ELEMENT(AtanhFunction, std::atanh(x));
COHORT_TWO_ELEMENTS(Atan2Function, std::atan2(x, y));
COHORT_TWO_ELEMENTS(XdivyFunction, x == W(0) ? W(0) : x / y);
COHORT_TWO_ELEMENTS(XlogyFunction, x == W(0) ? W(0) : x * std::log(y));
#undef COHORT_ONE_ELEMENT
#undef COHORT_TWO_ELEMENTS

template <typename Fn>
void RunOne(Driver& driver, StreamHandle stream, ElementType type, const UnaryArgs& args) {
  ForFloating(type, "a special function",
              [&]<typename T>(T) { LaunchUnaryElements<T, T>(driver, stream, args.x, args.y, args.n, Fn()); });
}
template <typename Fn>
void RunTwo(Driver& driver, StreamHandle stream, ElementType type, const BinaryArgs& args) {
  ForFloating(type, "a special function",
              [&]<typename T>(T) { LaunchBinaryElements<T, T>(driver, stream, args, Fn()); });
}

}  // namespace

void LaunchSpecial(Driver& driver, StreamHandle stream, SpecialFunction op, ElementType type, const UnaryArgs& args) {
  switch (op) {
    case SpecialFunction::kAsin: return RunOne<AsinFunction>(driver, stream, type, args);
    case SpecialFunction::kAcos: return RunOne<AcosFunction>(driver, stream, type, args);
    case SpecialFunction::kAtan: return RunOne<AtanFunction>(driver, stream, type, args);
    case SpecialFunction::kSinh: return RunOne<SinhFunction>(driver, stream, type, args);
    case SpecialFunction::kCosh: return RunOne<CoshFunction>(driver, stream, type, args);
    case SpecialFunction::kAsinh: return RunOne<AsinhFunction>(driver, stream, type, args);
    case SpecialFunction::kAcosh: return RunOne<AcoshFunction>(driver, stream, type, args);
    case SpecialFunction::kAtanh: return RunOne<AtanhFunction>(driver, stream, type, args);
  }
}

void LaunchSpecialPair(Driver& driver, StreamHandle stream, SpecialPair op, ElementType type, const BinaryArgs& args) {
  switch (op) {
    case SpecialPair::kAtan2: return RunTwo<Atan2Function>(driver, stream, type, args);
    case SpecialPair::kXdivy: return RunTwo<XdivyFunction>(driver, stream, type, args);
    case SpecialPair::kXlogy: return RunTwo<XlogyFunction>(driver, stream, type, args);
  }
}

}  // namespace cohort::cuda
