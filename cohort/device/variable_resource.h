// VariableResource: a value that steps read and update. A read sees a whole value, never half an update.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"

namespace cohort {

// Thread-safe. The value lies in the memory of the device that the variable stands on. A read shares the value's
// buffer. An update writes old + change into a second buffer and swaps the two, or changes the first one in place if no
// reader holds it; so two buffers suffice however many readers there are.
//
// On a device with streams the functions are called when work is enqueued: what Read returns is valid in the order of
// the compute stream, and `change` enqueues its work instead of doing it. It enqueues under the variable's lock, so
// readers and updates stand on the stream in the order in which they saw the variable.
class VariableResource : public Resource {
 public:
  // The second buffers of updates come from `allocator`, which must live as long as there are updates. `container` is
  // the one of the ResourceManager that the variable is in.
  VariableResource(std::string name, DType dtype, Shape shape, Allocator& allocator = HostAllocator(),
                   std::string container = ResourceManager::kDefaultContainer);

  const std::string& name() const { return name_; }
  const std::string& container() const { return container_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // as declared: dimensions may be unknown
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }
  // The shape of the value. Throws as Read.
  Shape value_shape() const;

  // Throws FailedPreconditionError "Attempting to use uninitialized value NAME".
  virtual Tensor Read() const;
  // Takes over the tensor (its buffer is not copied: the caller must not write into it afterwards).
  // Throws InvalidArgumentError when dtype or shape do not fit the declaration.
  virtual void Assign(const Tensor& value);
  // `change(old, out)` writes all elements of `out` from `old` (both of the value's shape and dtype; the two may be the
  // same memory). Under the variable's lock: one update after another. Throws FailedPreconditionError. `change` makes
  // all its checks before it writes: what it has written when it throws may stay.
  void Update(const std::function<void(const Tensor& old, Tensor& out)>& change);
  // The same for a variable with slots that change together (Momentum, Adam): all are locked in the order of their
  // addresses, `outs[i]` belongs to `variables[i]`. Throws InvalidArgumentError for a variable that stands twice.
  static void UpdateTogether(std::span<VariableResource* const> variables,
                             const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change);

  // How often it was assigned or updated.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  std::string Describe() const override { return "variable '" + name_ + "'"; }

 protected:
  // The locks of several variables, taken in the order of their addresses. Throws InvalidArgumentError if one stands
  // twice.
  class SetLock {
   public:
    enum class Mode { kShared, kExclusive };
    SetLock(std::vector<VariableResource*> variables, Mode mode);
    ~SetLock();
    SetLock(const SetLock&) = delete;
    SetLock& operator=(const SetLock&) = delete;
    // In the order of locking.
    const std::vector<VariableResource*>& variables() const { return variables_; }

   private:
    std::vector<VariableResource*> variables_;
    Mode mode_;
  };

  void CheckInitialized() const COHORT_REQUIRES_SHARED(mu_);
  // Throws as Assign.
  void CheckFits(const Tensor& value) const;
  // Makes `value` the variable's.
  void Store(Tensor value) COHORT_REQUIRES(mu_);
  void CountUpdate() { version_.fetch_add(1, std::memory_order_acq_rel); }

  mutable SharedMutex mu_;  // guards which buffer is the value, and its bytes but for those that a subclass guards
  Tensor value_ COHORT_GUARDED_BY(mu_);

 private:
  // Where an update of the value writes: in place if nobody else can see it.
  Tensor TargetOfUpdate() const COHORT_REQUIRES(mu_);

  const std::string name_;
  const std::string container_;
  const DType dtype_;
  const Shape shape_;
  Allocator& allocator_;
  std::atomic<bool> initialized_{false};
  std::atomic<int64_t> version_{0};
};

}  // namespace cohort
