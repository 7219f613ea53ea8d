#include "cohort/backends/cuda/cuda_backend.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cohort/backends/cpu/passes/bias_fusion.h"
#include "cohort/backends/cpu/passes/image_gradient_fusion.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/elementwise_chain.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/passes/join_updates.h"
#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// Left to the driver and to the libraries of a card whose memory has no limit.
constexpr size_t kReserve = size_t{256} << 20;

// Returns how much of the card's memory this process may use. It is asked when the process uses the card first, so that
// memory of its own earlier sessions does not count.
size_t UsableBytes(Driver& driver, int card) {
  static Mutex mu;
  static auto* const known = new std::map<std::pair<Driver*, int>, size_t>;
  MutexLock lock(mu);
  const auto [at, is_new] = known->emplace(std::make_pair(&driver, card), 0);
  if (is_new) {
    const size_t free = driver.FreeBytes(card);
    at->second = free - std::min(kReserve, free / 8);
  }
  return at->second;
}

// Returns the number at the end of a physical device's name.
int CardOf(const config::PhysicalDevice& device) { return std::stoi(device.name.substr(device.name.rfind(':') + 1)); }

std::string PhysicalName(const std::string& type, int card) { return StrCat("/physical_device:", type, ":", card); }

// Writes the line that TensorFlow writes, once for each device of the process.
void LogCreated(Driver& driver, const std::string& name, const CudaDeviceOptions& options) {
  static Mutex mu;
  static auto* const written = new std::set<std::pair<std::string, int>>;
  {
    MutexLock lock(mu);
    if (!written->emplace(name, options.card).second) return;
  }
  const CardInfo card = driver.Card(options.card);
  LogInfo("cuda", "Created device ", name, " with ", options.memory_limit >> 20,
          " MB memory -> physical GPU (device: ", options.card, ", name: ", card.name,
          ", pci bus id: ", card.pci_bus_id, ", compute capability: ", card.major, ".", card.minor, ")");
}

}  // namespace

std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListCards() {
  std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> cards;
  std::string why;
  Driver* const driver = FindDriver(&why);
  if (driver == nullptr) {
    LogWarning("cuda", "no GPU is used, and all work is done on the CPU: ", why);
    return cards;
  }
  const std::string& type = CudaBackend::Get().type();
  for (int i = 0; i < driver->CardCount(); ++i) {
    const CardInfo card = driver->Card(i);
    cards.push_back({{PhysicalName(type, i), type},
                     {card.name, {card.major, card.minor}, static_cast<int64_t>(card.memory_bytes)}});
  }
  return cards;
}

std::vector<DevicePart> PlanDevices(Driver& driver, int count, const std::vector<config::LogicalSetting>& logical) {
  std::vector<DevicePart> parts;
  std::map<int, size_t> left;     // bytes of each card that are not promised
  std::map<int, size_t> sharing;  // how many devices of each card have no limit of their own
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    DevicePart part;
    if (logical.empty()) {
      part.card = static_cast<int>(i) % driver.CardCount();
    } else {
      const config::LogicalSetting& setting = logical[i % logical.size()];
      part.card = CardOf(setting.physical);
      part.memory_growth = setting.memory_growth;
      // More devices than the config has share what is left.
      if (i < logical.size()) part.memory_limit = static_cast<size_t>(setting.memory_limit);
    }
    if (left.count(part.card) == 0) left[part.card] = UsableBytes(driver, part.card);
    size_t& of_card = left[part.card];
    of_card -= std::min(of_card, part.memory_limit);
    if (part.memory_limit == 0) ++sharing[part.card];
    parts.push_back(part);
  }
  for (DevicePart& part : parts) {
    if (part.memory_limit == 0) part.memory_limit = left[part.card] / sharing[part.card];
  }
  return parts;
}

CudaBackend& CudaBackend::Get() {
  static auto* const backend = new CudaBackend;
  return *backend;
}

std::vector<std::unique_ptr<Device>> CudaBackend::MakeDevices(const DeviceRequest& request) const {
  Driver* const driver = FindDriver();
  std::vector<std::unique_ptr<Device>> devices;
  if (driver == nullptr) return devices;  // the config has said why (RegisterCudaBackend)
  const std::vector<DevicePart> parts = PlanDevices(*driver, request.count, request.logical);
  for (size_t i = 0; i < parts.size(); ++i) {
    CudaDeviceOptions options;
    options.card = parts[i].card;
    options.memory_limit = parts[i].memory_limit;
    options.reserve_all_memory = !parts[i].memory_growth;
    options.intra_op_threads = request.intra_op_threads;
    DeviceAttributes attributes = AttributesOf(request.task, type_, static_cast<int>(i));
    attributes.memory_limit = static_cast<int64_t>(options.memory_limit);
    devices.push_back(std::make_unique<CudaDevice>(*this, attributes, request.resources, *driver, options));
    LogCreated(*driver, StrCat("/device:", type_, ":", i), options);
  }
  return devices;
}

void CudaBackend::RegisterKernels(KernelRegistry& registry) const {
  RegisterStateKernels(registry);
  RegisterConstantKernels(registry);
  RegisterUnaryKernels(registry);
  RegisterArithmeticKernels(registry);
  RegisterComparisonKernels(registry);
  RegisterSelectKernels(registry);
  RegisterActivationKernels(registry);
  RegisterReductionKernels(registry);
  RegisterSoftmaxKernels(registry);
  RegisterRandomKernels(registry);
  RegisterArrayKernels(registry);
  RegisterLayoutKernels(registry);
  RegisterJoinKernels(registry);
  RegisterSliceKernels(registry);
  RegisterGatherKernels(registry);
  RegisterPartitionKernels(registry);
  RegisterScanKernels(registry);
  RegisterTrainingKernels(registry);
  RegisterMatMulKernels(registry);
  RegisterConvolutionKernels(registry);
  RegisterPoolingKernels(registry);
  RegisterBatchNormKernels(registry);
  RegisterNnKernels(registry);
  RegisterKernelsOnHost(registry);
}

// Images stay [batch, rows, columns, channels], so the CPU's choice of their order is left out.
std::unique_ptr<Graph> CudaBackend::Improve(std::unique_ptr<Graph> partition) const {
  return JoinUpdatesOfOptimizers(FuseImageGradients(FuseBiases(std::move(partition), type_), type_));
}

bool CudaBackend::CanChain(const ChainLink& producer, const ChainLink& consumer) const {
  return CanChainElementwise(producer, consumer);
}

std::unique_ptr<OpKernel> CudaBackend::MakeChain(std::vector<ChainLink> links) const {
  return MakeElementwiseChain(std::move(links));
}

}  // namespace cohort::cuda
