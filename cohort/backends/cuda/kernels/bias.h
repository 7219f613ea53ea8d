// Biases and activations that end a product or a convolution, and gradients of biases. kernels/nn.cc defines them.
#pragma once

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/kernels/nn.cu.h"

namespace cohort::cuda {

// Enqueues value = activation(value + bias), in place; the bias is along the last dimension.
void AddBias(const CudaCall& call, Activation activation, const Tensor& bias, Tensor& value);

// Enqueues that `sums` becomes the sums over all dimensions of `value` but the last one.
void SumToBias(const CudaCall& call, const Tensor& value, Tensor& sums);

}  // namespace cohort::cuda
