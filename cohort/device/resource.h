// Resource: an object that outlives a step, such as a variable, an iterator or a queue. ResourceManager: the resources
// of one task, by name.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The base of all resources. shared_ptrs own it: each handle tensor has one, and so has the manager if the resource is
// in its list.
class Resource {
 public:
  virtual ~Resource() = default;
  // Returns a short text for error messages: "variable 'w'".
  virtual std::string Describe() const = 0;
  // Called when ResourceManager::Clear has removed the resource from `container`. A resource in which kernels wait ends
  // their waits with an error. Called without locks, on the thread that calls Clear.
  virtual void OnRemoved(const std::string& container) { static_cast<void>(container); }
  // Called when a session has ended on this task, after its steps have ended (ResourceManager::SessionEnded). A
  // resource that keeps something for a session gives it up.
  virtual void OnSessionEnded(uint64_t session) { static_cast<void>(session); }
  // Called when a step that has run here has failed, perhaps on another task and after its end here
  // (ResourceManager::StepFailed). A resource that the step has taken something from takes it back. May be called twice
  // for a step, and for a step that never used the resource.
  virtual void OnStepFailed(uint64_t session, int64_t step) {
    static_cast<void>(session);
    static_cast<void>(step);
  }
};

// The resources of one task. Thread-safe. A resource lives as long as the manager or a handle tensor holds it.
class ResourceManager {
 public:
  static constexpr const char* kDefaultContainer = "localhost";

  // Returns the resource `name` of a container; "" means the default container. Calls `make` to create the resource if
  // there is none. Throws what `make` throws. `make` is called under the manager's lock, so it must not call the
  // manager. Throws FailedPreconditionError if the resource has another C++ type.
  template <typename T>
  std::shared_ptr<T> LookupOrCreate(const std::string& container, const std::string& name,
                                    const std::function<std::shared_ptr<T>()>& make) {
    std::shared_ptr<Resource> found = LookupOrCreateAny(container, name, [&] { return make(); });
    std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(found);
    if (typed == nullptr) FailType(container, name, *found);
    return typed;
  }
  // Returns the resource `name` of a container, or nullptr if there is none.
  std::shared_ptr<Resource> Lookup(const std::string& container, const std::string& name) const;
  // Returns all resources of the container, sorted by name.
  std::vector<std::pair<std::string, std::shared_ptr<Resource>>> List(const std::string& container) const;
  // Removes all resources of a container, and calls OnRemoved of each. A resource lives on as long as a handle holds
  // it.
  void Clear(const std::string& container);
  // Calls OnSessionEnded of all resources of all containers.
  void SessionEnded(uint64_t session);
  // Calls OnStepFailed of all resources of all containers.
  void StepFailed(uint64_t session, int64_t step);
  // Returns a number that grows with every Clear of any container. A kernel that keeps a handle looks up the resource
  // again when the number has changed.
  int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  std::vector<std::shared_ptr<Resource>> All() const COHORT_EXCLUDES(mu_);
  std::shared_ptr<Resource> LookupOrCreateAny(const std::string& container, const std::string& name,
                                              const std::function<std::shared_ptr<Resource>()>& make);
  [[noreturn]] static void FailType(const std::string& container, const std::string& name, const Resource& found);

  mutable Mutex mu_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Resource>> resources_ COHORT_GUARDED_BY(mu_);
  std::atomic<int64_t> epoch_{0};
};

// Returns a scalar tensor of dtype kResource that holds a reference to `resource`.
Tensor MakeResourceHandle(std::shared_ptr<Resource> resource);
// Returns the resource of a handle. Throws InvalidArgumentError if the tensor is not a handle.
const std::shared_ptr<Resource>& ResourceOfHandle(const Tensor& handle);

// Returns the resource of a handle as a T. The reference is valid as long as something holds the resource, such as the
// handle. Throws InvalidArgumentError if the tensor is not a handle or the resource is not a T.
template <typename T>
T& ResourceOf(const Tensor& handle) {
  T* typed = dynamic_cast<T*>(ResourceOfHandle(handle).get());
  if (typed == nullptr)
    throw InvalidArgumentError("[resource] the handle is one of " + ResourceOfHandle(handle)->Describe());
  return *typed;
}

}  // namespace cohort
