// Fusion: elementwise kernels that feed only one another run as one pass over the memory, in place.
#pragma once

#include <cstdint>
#include <unordered_map>
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

// Kernels that run as one. Thread-safe once its constants are bound.
class ElementwiseChain {
 public:
  explicit ElementwiseChain(std::vector<ChainStage> stages, DType dtype);

  const std::vector<ChainStage>& stages() const { return stages_; }
  // Finds the operands that are the same in every run, once for all: `constants` maps slots to values that live and
  // stay where they are as long as the chain.
  void BindConstants(const std::unordered_map<int32_t, const Tensor*>& constants);
  // Runs the stages on the tensors in `slots`, all on one shape, and puts the result into `output`. False, and nothing
  // is done, where the operands of this step do not have that form (one of them would broadcast to a larger shape): the
  // kernels then run one by one. `threads`: the OpenMP team that may be used.
  bool Run(const Tensor* slots, const int32_t* uses, Allocator& allocator, int threads, Tensor& output) const;

 private:
  // A stage with its operands found: `a` and `b` are null where the running value stands.
  struct Bound {
    ElementwiseLoops::Unary unary = nullptr;
    ElementwiseLoops::Binary binary = nullptr;
    const char* a = nullptr;
    const char* b = nullptr;
    size_t a_step = 0;  // bytes from one element to the next, 0 for a scalar
    size_t b_step = 0;
    int32_t in_run = -1;  // index among the stages that each run binds for itself
  };

  // The operand of the first stage that has the shape of the result: slot, or -1 where there is none.
  int32_t PrimarySlot(const Tensor* slots) const;
  // Of a binary stage the operand that is not the running value.
  int32_t OtherSlot(size_t index, int32_t primary, bool* is_right) const;
  void SetOther(const ChainStage& stage, const Tensor& operand, bool is_right, bool scalar, Bound* bound) const;
  void RunBlock(const std::vector<Bound>& of_run, const char* first, char* out, int64_t begin, int64_t count) const;

  std::vector<ChainStage> stages_;
  DType dtype_;
  size_t element_;            // bytes
  std::vector<Bound> bound_;  // one a stage
  std::vector<size_t> open_;  // stages that each run binds for itself, in order
  int constant_rank_ = 0;     // the greatest of the constants that are bound
};

}  // namespace cohort
