#include "cohort/backends/cuda/kernels/activation.cu.h"
#include "cohort/backends/cuda/kernels/activation_gradients.h"
#include "cohort/backends/cuda/kernels/elements.h"

namespace cohort::cuda {
namespace {

template <typename Fn>
void LaunchGradient(Driver& driver, StreamHandle stream, ElementType type, const void* a, const void* b, void* out,
                    int64_t n, const Fn& fn = Fn()) {
  BinaryArgs args{a, b, out, n};
  ForFloating(type, "the gradient of an activation",
              [&]<typename T>(T) { LaunchBinaryElements<T, T>(driver, stream, args, fn); });
}

}  // namespace

void LaunchActivation(Driver& driver, StreamHandle stream, Activation activation, ElementType type, const void* x,
                      void* y, int64_t n) {
  ForFloating(type, "an activation", [&]<typename T>(T) {
    ForActivation(activation, [&](const auto& fn) { LaunchUnaryElements<T, T>(driver, stream, x, y, n, fn); });
  });
}

void LaunchActivationGradient(Driver& driver, StreamHandle stream, ActivationGradient gradient, ElementType type,
                              const void* a, const void* b, void* out, int64_t n) {
  switch (gradient) {
    case ActivationGradient::kRelu: return LaunchGradient<ReluGradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kRelu6: return LaunchGradient<Relu6Gradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kElu: return LaunchGradient<EluGradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kSelu: return LaunchGradient<SeluGradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kSoftplus: return LaunchGradient<SoftplusGradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kSigmoid: return LaunchGradient<SigmoidGradient>(driver, stream, type, a, b, out, n);
    case ActivationGradient::kTanh: return LaunchGradient<TanhGradient>(driver, stream, type, a, b, out, n);
  }
}

void LaunchLeakyRelu(Driver& driver, StreamHandle stream, ElementType type, float alpha, const void* x, void* y,
                     int64_t n) {
  ForFloating(type, "LeakyRelu",
              [&]<typename T>(T) { LaunchUnaryElements<T, T>(driver, stream, x, y, n, LeakyReluFunction{alpha}); });
}

void LaunchLeakyReluGradient(Driver& driver, StreamHandle stream, ElementType type, float alpha, const void* gradient,
                             const void* x, void* out, int64_t n) {
  LaunchGradient(driver, stream, type, gradient, x, out, n, LeakyReluGradient{alpha});
}

}  // namespace cohort::cuda
