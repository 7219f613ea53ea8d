// Resource: state that outlives a step (variables, iterators, queues). ResourceManager: all of one task, by name.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort {

class Resource {
 public:
  virtual ~Resource() = default;
  virtual std::string Describe() const = 0;
};

// Thread-safe. A resource lives as long as the manager or a handle tensor holds it.
class ResourceManager {
 public:
  static constexpr const char* kDefaultContainer = "localhost";

  // The resource (container, name), made by `make` where there is none; "" is the default container. `make` runs once,
  // under the manager's lock, so it must not call the manager. Throws FailedPreconditionError when there is one of
  // another C++ type.
  template <typename T>
  std::shared_ptr<T> LookupOrCreate(const std::string& container, const std::string& name,
                                    const std::function<std::shared_ptr<T>()>& make) {
    std::shared_ptr<Resource> found = LookupOrCreateAny(container, name, [&] { return make(); });
    std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(found);
    if (typed == nullptr) FailType(container, name, *found);
    return typed;
  }
  // Null where there is none.
  std::shared_ptr<Resource> Lookup(const std::string& container, const std::string& name) const;
  // Every resource of the container, by name.
  std::vector<std::pair<std::string, std::shared_ptr<Resource>>> List(const std::string& container) const;
  // Drops all of a container ("" = default); who still holds a handle keeps the old resource alive.
  void Clear(const std::string& container);
  // Grows with every Clear; a kernel that has cached a handle looks it up again when the epoch has changed.
  int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<Resource> LookupOrCreateAny(const std::string& container, const std::string& name,
                                              const std::function<std::shared_ptr<Resource>()>& make);
  [[noreturn]] static void FailType(const std::string& container, const std::string& name, const Resource& found);

  mutable Mutex mu_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Resource>> resources_ COHORT_GUARDED_BY(mu_);
  std::atomic<int64_t> epoch_{0};
};

// A scalar tensor of dtype kResource that holds a reference to `resource`.
Tensor MakeResourceHandle(std::shared_ptr<Resource> resource);
// The resource behind a handle. Throws InvalidArgumentError where the tensor is no handle.
const std::shared_ptr<Resource>& ResourceOfHandle(const Tensor& handle);

// Throws InvalidArgumentError where the resource is not a T.
template <typename T>
T& ResourceOf(const Tensor& handle) {
  T* typed = dynamic_cast<T*>(ResourceOfHandle(handle).get());
  if (typed == nullptr)
    throw InvalidArgumentError("[resource] the handle is one of " + ResourceOfHandle(handle)->Describe());
  return *typed;
}

}  // namespace cohort
