#include "cohort/device/resource.h"

#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The only element of a handle tensor: a std::shared_ptr<Resource>.
class HandleBuffer final : public Buffer {
 public:
  explicit HandleBuffer(std::shared_ptr<Resource> resource)
      : Buffer(nullptr, sizeof(resource), MemorySpace::Host()), resource_(std::move(resource)) {
    data_ = &resource_;
  }

 private:
  void Destroy() override { delete this; }
  std::shared_ptr<Resource> resource_;
};

std::pair<std::string, std::string> KeyOf(const std::string& container, const std::string& name) {
  return {container.empty() ? ResourceManager::kDefaultContainer : container, name};
}

}  // namespace

std::shared_ptr<Resource> ResourceManager::LookupOrCreateAny(const std::string& container, const std::string& name,
                                                             const std::function<std::shared_ptr<Resource>()>& make) {
  MutexLock lock(mu_);
  auto key = KeyOf(container, name);
  const auto it = resources_.find(key);
  if (it != resources_.end()) return it->second;
  std::shared_ptr<Resource> made = make();
  resources_.emplace(std::move(key), made);
  return made;
}

std::shared_ptr<Resource> ResourceManager::Lookup(const std::string& container, const std::string& name) const {
  MutexLock lock(mu_);
  const auto it = resources_.find(KeyOf(container, name));
  return it == resources_.end() ? nullptr : it->second;
}

std::vector<std::pair<std::string, std::shared_ptr<Resource>>> ResourceManager::List(
    const std::string& container) const {
  std::vector<std::pair<std::string, std::shared_ptr<Resource>>> found;
  const auto first = KeyOf(container, "");
  MutexLock lock(mu_);
  for (auto it = resources_.lower_bound(first); it != resources_.end() && it->first.first == first.first; ++it) {
    found.emplace_back(it->first.second, it->second);
  }
  return found;
}

void ResourceManager::Clear(const std::string& container) {
  std::vector<std::shared_ptr<Resource>> dropped;  // told and destroyed without the lock: a destructor may wait
  const auto first = KeyOf(container, "");
  {
    MutexLock lock(mu_);
    auto it = resources_.lower_bound(first);
    while (it != resources_.end() && it->first.first == first.first) {
      dropped.push_back(std::move(it->second));
      it = resources_.erase(it);
    }
    epoch_.fetch_add(1, std::memory_order_release);
  }
  for (const std::shared_ptr<Resource>& resource : dropped) resource->OnRemoved(first.first);
}

std::vector<std::shared_ptr<Resource>> ResourceManager::All() const {
  std::vector<std::shared_ptr<Resource>> all;
  MutexLock lock(mu_);
  all.reserve(resources_.size());
  for (const auto& [key, resource] : resources_) all.push_back(resource);
  return all;
}

void ResourceManager::SessionEnded(uint64_t session) {
  for (const std::shared_ptr<Resource>& resource : All()) resource->OnSessionEnded(session);
}

void ResourceManager::StepFailed(uint64_t session, int64_t step) {
  for (const std::shared_ptr<Resource>& resource : All()) resource->OnStepFailed(session, step);
}

void ResourceManager::FailType(const std::string& container, const std::string& name, const Resource& found) {
  throw FailedPreconditionError(StrCat("[resource] '", name, "' of container '", KeyOf(container, name).first,
                                       "' exists already, as ", found.Describe(),
                                       ", and is wanted as another kind; give one of the two another name"));
}

Tensor MakeResourceHandle(std::shared_ptr<Resource> resource) {
  return Tensor(DType::kResource, Shape(), BufferPtr::Adopt(new HandleBuffer(std::move(resource))), 0);
}

const std::shared_ptr<Resource>& ResourceOfHandle(const Tensor& handle) {
  if (handle.dtype() != DType::kResource || handle.raw_data() == nullptr) {
    throw InvalidArgumentError(StrCat("[resource] expected a resource handle; got ", handle.dtype(), handle.shape()));
  }
  return *static_cast<const std::shared_ptr<Resource>*>(handle.raw_data());
}

}  // namespace cohort
