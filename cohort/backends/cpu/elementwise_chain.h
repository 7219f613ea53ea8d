// ElementwiseChain: a kernel that runs a chain of elementwise nodes, in one pass over the memory if the shapes allow
// it.
#pragma once

#include <memory>
#include <vector>

#include "cohort/backends/chain_operands.h"
#include "cohort/backends/cpu/kernels/elementwise_loops.h"
#include "cohort/core/mutex.h"
#include "cohort/device/backend.h"

namespace cohort::cpu {

// Returns true if both kernels work element by element and accept every value of their operands, and if all their
// operands and results have one dtype, which is not string. See Backend::CanChain.
bool CanChainElementwise(const ChainLink& producer, const ChainLink& consumer);

// Returns an ElementwiseChain of the nodes `links`. See Backend::MakeChain.
std::unique_ptr<OpKernel> MakeElementwiseChain(std::vector<ChainLink> links);

// Runs several nodes as one kernel. If, in a step, each operand has the shape of the result or is a single element, the
// chain passes over the memory once, block by block. In any other step it runs the kernels of the nodes one by one.
// The plan owns it. Thread-safe.
class ElementwiseChain final : public OpKernel {
 public:
  explicit ElementwiseChain(std::vector<ChainLink> links);
  ~ElementwiseChain() override;
  void Compute(KernelContext& ctx) override;

 private:
  using Operand = ChainOperand;
  // A node of the chain as RunAsOne needs it.
  struct Stage {
    const ElementwiseLoops* loops = nullptr;
    Operand left = kRunningValue;
    Operand right = kRunningValue;  // unused by a unary kernel
  };
  // A stage whose operands have addresses. `a` or `b` is null if it is the running value, which is the result of the
  // stage before.
  struct Bound {
    ElementwiseLoops::Unary unary = nullptr;
    ElementwiseLoops::Binary binary = nullptr;
    const char* a = nullptr;
    const char* b = nullptr;
    size_t a_step = 0;  // bytes from one element to the next, 0 for a single element
    size_t b_step = 0;
    int32_t in_run = -1;  // index into of_run of RunBlock; -1: the stage is the same in every step
  };
  // A node of the chain as RunOneByOne needs it. RunOneByOne has its own slots: values from outside, then constants,
  // then results.
  struct Single {
    const Node* node = nullptr;
    std::unique_ptr<OpKernel> kernel;
    std::vector<int32_t> input_slots;
    int32_t output_slot = 0;
  };
  struct OutsideValue {
    int input;     // the first input of the chain that has this value
    int32_t uses;  // how often the chain uses it
  };
  struct Scratch;
  class ScratchLease;

  void AddLink(ChainLink link);
  void BindConstants();
  // Assigns the slots of RunOneByOne. A value from outside gets one slot, even if it is used several times.
  void LayOutSlots();
  // Returns the operand of the first stage if the stage is unary. If it is binary, returns the operand that has the
  // shape of the stage's result, or kRunningValue if the other operand neither has this shape too nor is a single
  // element.
  Operand Primary(const KernelContext& ctx) const;
  // A binary stage has two operands: one is the running value (for the first stage: `primary`). Returns the other one.
  // Sets *is_right to true if it returns the right operand, and to false if it returns the left operand.
  Operand Other(size_t stage, Operand primary, bool* is_right) const;
  void SetOther(const Stage& stage, const Tensor& operand, bool is_right, bool scalar, Bound* bound) const;
  // Runs all stages for `count` elements from `begin`. `first` is the data of Primary()'s operand. `of_run` has the
  // stages of open_ with the operands of this run.
  void RunBlock(const std::vector<Bound>& of_run, const char* first, char* out, int64_t begin, int64_t count) const;
  // Runs the stages block by block. Returns false, and computes nothing, if an operand of this step has neither the
  // result's shape nor a single element.
  bool RunAsOne(KernelContext& ctx) const;
  void RunOneByOne(KernelContext& ctx) const;
  std::unique_ptr<Scratch> TakeScratch() const;

  const size_t element_;  // bytes of an element
  std::vector<Stage> stages_;
  ChainOperands operands_;
  std::vector<Bound> bound_;  // one for each stage
  std::vector<size_t> open_;  // the stages whose operands each run has to set, in order
  int constant_rank_ = 0;     // the largest rank of a constant in bound_

  std::vector<Single> singles_;
  std::vector<OutsideValue> outside_;
  std::vector<int32_t> initial_uses_;  // of each slot
  mutable Mutex scratch_mu_;
  mutable std::vector<std::unique_ptr<Scratch>> scratch_ COHORT_GUARDED_BY(scratch_mu_);  // not in use by a run
};

}  // namespace cohort::cpu
