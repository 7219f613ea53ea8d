// Inverse and hyperbolic functions, Atan2, Xdivy and Xlogy, as elementwise kernels (elementwise.h).
#include <cmath>
#include <memory>

#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"

namespace cohort {
namespace {

constexpr int64_t kCost = 16;  // of an element, in simple operations

// Declares a function `name` of one element x, or of two elements x and y.
#define COHORT_ONE_ELEMENT(name, result) \
  struct name {                          \
    template <typename W>                \
    static COHORT_INLINE W Apply(W x) {  \
      return result;                     \
    }                                    \
  }
#define COHORT_TWO_ELEMENTS(name, result)    \
  struct name {                              \
    template <typename W>                    \
    static COHORT_INLINE W Apply(W x, W y) { \
      return result;                         \
    }                                        \
  }

COHORT_ONE_ELEMENT(AsinFn, std::asin(x));
COHORT_ONE_ELEMENT(AcosFn, std::acos(x));
COHORT_ONE_ELEMENT(AtanFn, std::atan(x));
COHORT_ONE_ELEMENT(SinhFn, std::sinh(x));
COHORT_ONE_ELEMENT(CoshFn, std::cosh(x));
COHORT_ONE_ELEMENT(AsinhFn, std::asinh(x));
COHORT_ONE_ELEMENT(AcoshFn, std::acosh(x));
COHORT_ONE_ELEMENT(AtanhFn, std::atanh(x));
COHORT_TWO_ELEMENTS(Atan2Fn, std::atan2(x, y));
COHORT_TWO_ELEMENTS(XdivyFn, x == W(0) ? W(0) : x / y);
COHORT_TWO_ELEMENTS(XlogyFn, x == W(0) ? W(0) : x * std::log(y));
#undef COHORT_ONE_ELEMENT
#undef COHORT_TWO_ELEMENTS

template <typename Fn>
void RegisterOne(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForFloating(c.node.input(0).dtype(), c.node.op_name(), []<typename T>(T) -> std::unique_ptr<OpKernel> {
      return std::make_unique<cpu::UnaryKernel>(cpu::Widest<cpu::UnaryBody<Fn, T, T>>(true), kCost);
    });
  });
}
template <typename Fn>
void RegisterTwo(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForFloating(c.node.input(0).dtype(), c.node.op_name(), []<typename T>(T) -> std::unique_ptr<OpKernel> {
      return std::make_unique<cpu::BinaryKernel>(cpu::MakeBinaryLoops<Fn, T>(), kCost);
    });
  });
}

}  // namespace

void RegisterSpecialFunctionKernels(KernelRegistry& registry) {
  RegisterOne<AsinFn>(registry, "Asin");
  RegisterOne<AcosFn>(registry, "Acos");
  RegisterOne<AtanFn>(registry, "Atan");
  RegisterOne<SinhFn>(registry, "Sinh");
  RegisterOne<CoshFn>(registry, "Cosh");
  RegisterOne<AsinhFn>(registry, "Asinh");
  RegisterOne<AcoshFn>(registry, "Acosh");
  RegisterOne<AtanhFn>(registry, "Atanh");
  RegisterTwo<Atan2Fn>(registry, "Atan2");
  RegisterTwo<XdivyFn>(registry, "Xdivy");
  RegisterTwo<XlogyFn>(registry, "Xlogy");
}

}  // namespace cohort
