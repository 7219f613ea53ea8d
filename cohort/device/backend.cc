#include "cohort/device/backend.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

std::unique_ptr<OpKernel> Backend::MakeChain(std::vector<ChainLink> links) const {
  throw InternalError(StrCat("[backend] expected no chain on devices of type ", type(), "; got one of ", links.size(),
                             " nodes that ends with ", links.empty() ? "nothing" : links.back().node->Describe()));
}

BackendRegistry& BackendRegistry::Global() {
  static auto* const registry = new BackendRegistry;
  return *registry;
}

void BackendRegistry::Register(const Backend& backend) {
  if (!backends_.emplace(backend.type(), &backend).second) {
    throw AlreadyExistsError(StrCat("[backend] device type ", backend.type(), " has a backend already"));
  }
  AddShortDeviceType(backend.type());
}

const Backend* BackendRegistry::Find(std::string_view type) const {
  const auto found = backends_.find(type);
  return found == backends_.end() ? nullptr : found->second;
}

std::vector<std::string> BackendRegistry::types() const {
  std::vector<std::string> types;
  for (const auto& [type, backend] : backends_) types.push_back(type);
  return types;
}

std::vector<std::unique_ptr<Device>> BackendRegistry::MakeDevices(const DeviceName& task,
                                                                  const std::map<std::string, int>& device_count,
                                                                  int intra_op_threads,
                                                                  const std::shared_ptr<TaskResources>& resources,
                                                                  const char* component) const {
  config_.Fix(StrCat("the first ", component));
  const auto count_of = [&](const std::string& type) {
    if (config_.IsHidden(type)) return 0;
    const auto wanted = device_count.find(type);
    return wanted != device_count.end() ? wanted->second : config_.Count(type);
  };
  const int host_devices = count_of(kHostDeviceType);
  if (host_devices < 1) {
    throw InvalidArgumentError(
        StrCat("[", component, "] device_count of ", kHostDeviceType, " must be at least 1; got ", host_devices));
  }
  if (Find(kHostDeviceType) == nullptr) {
    throw FailedPreconditionError(StrCat("[", component, "] expected a backend for devices of type ", kHostDeviceType,
                                         "; got backends for [", StrJoin(types(), ", "),
                                         "]: call RegisterAll() of cohort/registration.h first"));
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = intra_op_threads > 0 ? intra_op_threads : std::max(1, cores / host_devices);
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& [type, backend] : backends_) {
    if (count_of(type) <= 0) continue;
    auto more =
        backend->MakeDevices({task, count_of(type), threads, resources, config_.Visible(type), config_.Logical(type)});
    std::move(more.begin(), more.end(), std::back_inserter(devices));
  }
  return devices;
}

}  // namespace cohort
