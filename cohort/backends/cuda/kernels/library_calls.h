// Calls of the vendor's libraries for products and convolutions, with the algorithm that AlgorithmChooser chooses, and
// with scratch memory for it.
#pragma once

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"

namespace cohort::cuda {

// Enqueues the products. Returns false, and enqueues nothing, if the library does not compute the spec. The results may
// be written several times if algorithms are timed.
bool EnqueueProducts(const CudaCall& call, const GemmSpec& spec, const GemmOperands& operands);

// Enqueues one part of a convolution. Throws UnimplementedError if the library has no deterministic algorithm for it.
void EnqueueConvolution(const CudaCall& call, ConvolutionPart part, const DnnConvolution& convolution,
                        const DnnOperands& operands);

}  // namespace cohort::cuda
