// Fusion: elementwise kernels that feed only one another run as one pass over the memory, in place.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/device/kernel.h"

namespace cohort {

// One kernel of a chain. The first one has its operands in `left` and, where it is binary, `right`; of a later one the
// operand that is the value before it is -1.
struct ChainStage {
  const ElementwiseLoops* loops = nullptr;
  int32_t left = -1;   // slot
  int32_t right = -1;  // slot; of a unary kernel unused
};

// Whether `producer` and then `consumer` may be neighbours in a chain: both elementwise, one dtype throughout, the
// producer's value used by this consumer only (`uses` of its output slot is 1), no control edge between or beside them.
bool CanChain(const Node& producer, const OpKernel& producer_kernel, const Node& consumer,
              const OpKernel& consumer_kernel, int32_t uses);

// Runs `stages` on the tensors in `slots`, all on one shape, and puts the result into `output`. False, and nothing is
// done, where the operands of this step do not have that form (one of them would broadcast to a larger shape): the
// kernels then run one by one. `threads`: the OpenMP team that may be used.
bool RunChain(const std::vector<ChainStage>& stages, DType dtype, const Tensor* slots, const int32_t* uses,
              Allocator& allocator, int threads, Tensor& output);

}  // namespace cohort
