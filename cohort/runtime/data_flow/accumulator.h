// AccumulatorResource: the gradients that a ConditionalAccumulator or a SparseConditionalAccumulator has collected, and
// the kernels that wait until there are enough of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"
#include "cohort/runtime/data_flow/pending_kernel.h"

namespace cohort {

// The attributes of an accumulator.
struct AccumulatorSpec {
  std::string name;
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();  // of the dense form of a gradient, as far as it is known
  bool mean = true;                    // false: the result is the sum
};

// A gradient. If it is sparse: `values` [n, ...row], `indices` [n] (int64), `dense_shape` (int64). If it is dense, only
// `values` is defined.
struct AccumulatedGradient {
  Tensor values;
  Tensor indices;
  Tensor dense_shape;
};

// Collects gradients and gives out their mean or sum. The semantics are TensorFlow's. A gradient that was computed at a
// step before the accumulator's global step is stale: it is dropped and counted. A kernel that has to wait is kept in a
// list, and no thread is blocked. Its wait ends with an error if its step is cancelled or if the container of the
// accumulator is cleared. The task's ResourceManager owns the accumulator. Thread-safe. Apply and Take end the kernel
// now or later, on any thread; they may also continue other steps on the calling thread. They must be called on an
// object that a shared_ptr owns.
class AccumulatorResource : public Resource, public std::enable_shared_from_this<AccumulatorResource> {
 public:
  ~AccumulatorResource() override = default;
  const AccumulatorSpec& spec() const { return spec_; }
  // Throws InvalidArgumentError, with both values, if `wanted` has another dtype, shape or reduction.
  void CheckIsAs(const AccumulatorSpec& wanted) const;

  // Adds a gradient that was computed at `local_step`, or drops it if it is stale. The kernel fails with
  // kInvalidArgument if the gradient does not fit.
  void Apply(PendingKernel kernel, int64_t local_step, const AccumulatedGradient& gradient) COHORT_EXCLUDES(mu_);
  // Waits until there are at least `required` gradients, and makes the mean or the sum of all of them the kernel's
  // outputs. Afterwards there is no gradient, and the global step is 1 higher. Kernels are served in the order of their
  // calls. Fails with kInvalidArgument if `required` is less than 1.
  void Take(PendingKernel kernel, int64_t required) COHORT_EXCLUDES(mu_);
  // Sets the global step. Logs a warning if it becomes smaller.
  void SetGlobalStep(int64_t step) COHORT_EXCLUDES(mu_);
  int64_t num_accumulated() const COHORT_EXCLUDES(mu_);
  // Returns how many gradients were dropped because they were stale.
  int64_t num_stale() const COHORT_EXCLUDES(mu_);

  std::string Describe() const override;
  void OnRemoved(const std::string& container) override COHORT_EXCLUDES(mu_);

 protected:
  explicit AccumulatorResource(AccumulatorSpec spec) : spec_(std::move(spec)) {}
  // Returns the name of the class: "ConditionalAccumulator".
  virtual const char* kind() const = 0;
  // Throws InvalidArgumentError if the gradient does not fit the accumulator or what it has collected.
  virtual void Check(const AccumulatedGradient& gradient) const COHORT_REQUIRES(mu_) = 0;
  // Adds a gradient. `is_first` is true if there is none yet.
  virtual void Add(const AccumulatedGradient& gradient, bool is_first) COHORT_REQUIRES(mu_) = 0;
  // Removes the gradients and returns their mean or sum. Requires: there are `count` gradients, at least one.
  virtual AccumulatedGradient Remove(int64_t count) COHORT_REQUIRES(mu_) = 0;

  mutable Mutex mu_;

 private:
  struct Waiting {
    uint64_t id;
    PendingKernel kernel;
    int64_t required;
  };
  // A kernel that has left the list and is to be ended without the lock.
  struct Ended {
    PendingKernel kernel;
    Status status;
    AccumulatedGradient result;
  };

  // Returns the outcome of adding the gradient.
  Status TryAdd(int64_t local_step, const AccumulatedGradient& gradient) COHORT_REQUIRES(mu_);
  // Serves the kernels that wait, as far as there are enough gradients.
  void Serve(std::deque<Ended>* ended) COHORT_REQUIRES(mu_);
  // Ends a kernel that waits, because its step was cancelled. Does nothing if it does not wait any more.
  void Cancel(uint64_t id, const Status& why) COHORT_EXCLUDES(mu_);
  void EndAll(std::deque<Ended> ended) COHORT_EXCLUDES(mu_);

  const AccumulatorSpec spec_;
  Status removed_ COHORT_GUARDED_BY(mu_);  // why the accumulator cannot be used any more, or OK
  int64_t global_step_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t count_ COHORT_GUARDED_BY(mu_) = 0;
  int64_t stale_ COHORT_GUARDED_BY(mu_) = 0;
  uint64_t next_id_ COHORT_GUARDED_BY(mu_) = 1;
  std::deque<Waiting> waiting_ COHORT_GUARDED_BY(mu_);
};

// Return a new accumulator of dense, or of sparse gradients. Sums of bfloat16 are kept in float32. The sparse one
// divides each row by the number of gradients that held the row. Throw InvalidArgumentError for a dtype other than
// float32, float64 and bfloat16.
std::shared_ptr<AccumulatorResource> MakeDenseAccumulator(const AccumulatorSpec& spec);
std::shared_ptr<AccumulatorResource> MakeSparseAccumulator(const AccumulatorSpec& spec);

}  // namespace cohort
