// Products of matrices of floating-point numbers, for kernels that need them: MatMul, and convolutions whose filters
// are single points. kernels/matmul.cc defines them.
#pragma once

#include "cohort/backends/cuda/kernels/bias.h"
#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/libraries/blas.h"

namespace cohort::cuda {

// Enqueues c = a' b' (GemmSpec). The sizes m, n, k and the number of batches may be 0. The fields end, tensor_float_32
// and alignment of the spec are set here.
void Multiply(const CudaCall& call, GemmSpec spec, const GemmOperands& operands);

// Enqueues out = activation(a' b' + bias). Batches are not used. `operands` has neither bias nor c, which are the
// tensors.
void MultiplyAndEnd(const CudaCall& call, GemmSpec spec, GemmOperands operands, Activation activation,
                    const Tensor& bias, Tensor& out);

}  // namespace cohort::cuda
