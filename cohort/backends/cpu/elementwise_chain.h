// Chains of elementwise kernels that feed only one another. They run as one pass over the memory, in place.
#pragma once

#include <memory>
#include <vector>

#include "cohort/backends/cpu/kernels/elementwise_loops.h"
#include "cohort/core/mutex.h"
#include "cohort/device/backend.h"

namespace cohort::cpu {

// Whether both kernels are elementwise and all their operands and results have one dtype. See Backend::CanChain.
bool CanChainElementwise(const ChainLink& producer, const ChainLink& consumer);

// See Backend::MakeChain.
std::unique_ptr<OpKernel> MakeElementwiseChain(std::vector<ChainLink> links);

// Several nodes as one kernel. A step in which all values have one shape passes over the memory once, block by block.
// In any other step (an operand broadcasts to a larger shape) the kernels of the nodes run one by one. Thread-safe.
class ElementwiseChain final : public OpKernel {
 public:
  explicit ElementwiseChain(std::vector<ChainLink> links);
  ~ElementwiseChain() override;
  void Compute(KernelContext& ctx) override;

 private:
  // Says what an operand of a stage is: a number of 0 or more is an input of the chain; kValue is the result of the
  // stage before; -2 - k is constant k.
  using Operand = int32_t;
  static constexpr Operand kValue = -1;
  struct Stage {
    const ElementwiseLoops* loops = nullptr;
    Operand left = kValue;
    Operand right = kValue;  // of a unary kernel unused
  };
  // A stage with its operands found: `a` and `b` are null for the running value.
  struct Bound {
    ElementwiseLoops::Unary unary = nullptr;
    ElementwiseLoops::Binary binary = nullptr;
    const char* a = nullptr;
    const char* b = nullptr;
    size_t a_step = 0;  // bytes from one element to the next, 0 for a single element
    size_t b_step = 0;
    int32_t in_run = -1;  // index among the stages that each run binds for itself
  };
  // How the kernels run one by one: on slots of their own, laid out as [values from outside, constants, results].
  struct Single {
    const Node* node = nullptr;
    std::unique_ptr<OpKernel> kernel;
    std::vector<int32_t> input_slots;
    int32_t output_slot = 0;
  };
  struct OutsideValue {
    int input;     // the first input of the chain that is the value
    int32_t uses;  // how often the chain uses it
  };
  struct Scratch;
  class ScratchLease;

  void AddLink(ChainLink link);
  void BindConstants();
  // Gives the form one by one its slots, a value from outside one slot however often it is used.
  void LayOutSlots();
  const Tensor& TensorOf(const KernelContext& ctx, Operand operand) const;
  // Returns the operand of the first stage that has the shape of the result, kValue if there is none.
  Operand Primary(const KernelContext& ctx) const;
  // Returns the operand of a binary stage that is not the running value.
  Operand Other(size_t stage, Operand primary, bool* is_right) const;
  void SetOther(const Stage& stage, const Tensor& operand, bool is_right, bool scalar, Bound* bound) const;
  void RunBlock(const std::vector<Bound>& of_run, const char* first, char* out, int64_t begin, int64_t count) const;
  // Returns false, having done nothing, if the operands of this step do not all have one shape or a single element.
  bool RunAsOne(KernelContext& ctx) const;
  void RunOneByOne(KernelContext& ctx) const;
  std::unique_ptr<Scratch> TakeScratch() const;

  const size_t element_;  // bytes
  int num_inputs_ = 0;
  std::vector<Stage> stages_;
  std::vector<Tensor> constants_;
  std::vector<Bound> bound_;  // one a stage
  std::vector<size_t> open_;  // stages that each run binds for itself, in order
  int constant_rank_ = 0;     // the greatest of the constants that are bound

  std::vector<Single> singles_;
  std::vector<OutsideValue> outside_;
  std::vector<int32_t> initial_uses_;  // of each slot
  mutable Mutex scratch_mu_;
  mutable std::vector<std::unique_ptr<Scratch>> scratch_ COHORT_GUARDED_BY(scratch_mu_);  // that no run uses now
};

}  // namespace cohort::cpu
