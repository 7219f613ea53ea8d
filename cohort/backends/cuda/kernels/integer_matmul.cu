#include <type_traits>

#include "cohort/backends/cuda/kernels/integer_matmul.cu.h"

namespace cohort::cuda {
namespace {

// Each thread computes one element of c.
template <typename T>
struct IntegerMatMulKernel {
  IntegerProduct p;
  const T* a;
  const T* b;
  T* c;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    using Unsigned = std::make_unsigned_t<T>;
    const int64_t count = p.batches * p.m * p.n;
    for (int64_t at = thread.first(); at < count; at += thread.step()) {
      const int64_t j = at % p.n;
      const int64_t i = at / p.n % p.m;
      const int64_t batch = at / p.n / p.m;
      const T* left = a + batch * p.step_a + (p.transpose_a ? i : i * p.k);
      const T* right = b + batch * p.step_b + (p.transpose_b ? j * p.k : j);
      const int64_t left_step = p.transpose_a ? p.m : 1;
      const int64_t right_step = p.transpose_b ? 1 : p.n;
      Unsigned sum = 0;
      for (int64_t q = 0; q < p.k; ++q) {
        sum += static_cast<Unsigned>(left[q * left_step]) * static_cast<Unsigned>(right[q * right_step]);
      }
      c[at] = static_cast<T>(sum);
    }
  }
};

}  // namespace

void LaunchIntegerMatMul(Driver& driver, StreamHandle stream, ElementType type, const IntegerProduct& product,
                         const void* a, const void* b, void* c) {
  const auto launch = [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(product.batches * product.m * product.n),
           IntegerMatMulKernel<T>{product, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c)});
  };
  type == ElementType::kInt64 ? launch(int64_t()) : launch(int32_t());
}

}  // namespace cohort::cuda
