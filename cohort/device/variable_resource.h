// VariableResource: the state of a variable, which steps read and update. A read never sees a part of an update (except
// in a CpuVariable whose rows are read or updated one by one).
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

// The state of one variable. Its value lies in the memory of the variable's device. Read returns a tensor that shares
// the value's buffer. An update changes this buffer in place if no reader holds it. If a reader holds it, the update
// writes the new value into a new buffer, which then becomes the value. Handles and the task's ResourceManager own the
// variable. Thread-safe. (A CpuVariable whose rows are read or updated one by one keeps its value in another way; see
// CpuVariable.)
//
// On a device with streams, kernels call these methods when they enqueue work. The bytes of the tensor that Read
// returns may not be there yet, but work that is enqueued on the compute stream after the call of Read sees them. The
// `change` of an update enqueues its work on the same stream, and is called under the variable's lock. So reads and
// updates have the same order on the stream as their calls.
class VariableResource : public Resource {
 public:
  // `allocator` provides the new buffers of updates. It must live as long as the variable. `container` is the container
  // of the ResourceManager that the variable is in.
  VariableResource(std::string name, DType dtype, Shape shape, Allocator& allocator = HostAllocator(),
                   std::string container = ResourceManager::kDefaultContainer);

  const std::string& name() const { return name_; }
  const std::string& container() const { return container_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // as declared; dimensions may be unknown
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }
  // Returns the shape of the value. Throws as Read does.
  Shape value_shape() const;

  // Returns the value. Throws FailedPreconditionError "Attempting to use uninitialized value NAME" if the variable has
  // no value yet.
  virtual Tensor Read() const;
  // Makes `value` the variable's value. Shares its buffer and copies nothing, so the caller must not write into it
  // afterwards. Throws InvalidArgumentError if dtype or shape do not fit the declaration.
  virtual void Assign(const Tensor& value);
  // Updates the value. `change(old, out)` must write all elements of `out`. `old` and `out` have the value's shape and
  // dtype, and may be the same memory. `change` is called under the variable's lock, so updates do not overlap. If
  // `change` throws, the elements that it has written may stay; so it must make all checks before it writes. Throws
  // FailedPreconditionError if the variable has no value, and what `change` throws.
  void Update(const std::function<void(const Tensor& old, Tensor& out)>& change);
  // Updates several variables together, such as a variable and its slots (Momentum, Adam). Locks all of them, in the
  // order of their addresses, before it calls `change`. `olds[i]` and `outs[i]` belong to `variables[i]`. Throws as
  // Update does, and InvalidArgumentError if a variable occurs twice.
  static void UpdateTogether(std::span<VariableResource* const> variables,
                             const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>& change);

  // A variable as recorded work knows it (recorded_step.h): by the place of its value.
  struct Place {
    VariableResource* variable = nullptr;
    const void* data = nullptr;
    Shape shape;
    int updates = 0;  // how often the work overwrites the value; 0: it only reads the value
  };
  enum class Places { kKept, kShared, kMoved };
  // Calls `work`, which enqueues work that reads and overwrites the values at these places, and counts the updates. All
  // variables are locked meanwhile. Returns kKept then. Does nothing and returns kMoved if a value lies elsewhere, has
  // another shape or does not exist, and kShared if something else holds a value that would be overwritten. Throws what
  // `work` throws, and InvalidArgumentError if a variable occurs twice.
  static Places RunAtPlaces(std::span<const Place> places, const std::function<void()>& work);
  // Returns whether nothing but the variable holds its value. Throws as Read does.
  bool OwnsValueAlone() const;

  // Returns how often the variable was assigned or updated.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  std::string Describe() const override { return "variable '" + name_ + "'"; }

 protected:
  // Locks several variables, in the order of their addresses, until it is destroyed. Throws InvalidArgumentError if a
  // variable occurs twice.
  class SetLock {
   public:
    enum class Mode { kShared, kExclusive };
    SetLock(std::vector<VariableResource*> variables, Mode mode);
    ~SetLock();
    SetLock(const SetLock&) = delete;
    SetLock& operator=(const SetLock&) = delete;
    // Returns the variables in the order in which they are locked.
    const std::vector<VariableResource*>& variables() const { return variables_; }

   private:
    std::vector<VariableResource*> variables_;
    Mode mode_;
  };

  void CheckInitialized() const COHORT_REQUIRES_SHARED(mu_);
  // Throws as Assign does.
  void CheckFits(const Tensor& value) const;
  // Makes `value` the value.
  void Store(Tensor value) COHORT_REQUIRES(mu_);
  void CountUpdate() { version_.fetch_add(1, std::memory_order_acq_rel); }

  mutable SharedMutex mu_;  // guards value_, and the bytes of the value unless a subclass guards them
  Tensor value_ COHORT_GUARDED_BY(mu_);

 private:
  // Returns the tensor into which an update writes: the value itself if nothing else holds its buffer, else a new one.
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
