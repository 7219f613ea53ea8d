#include "cohort/backends/cuda/cuda_backend.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cohort/backends/cpu/passes/bias_fusion.h"
#include "cohort/backends/cpu/passes/image_gradient_fusion.h"
#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/elementwise_chain.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/passes/check_values.h"
#include "cohort/backends/cuda/passes/join_updates.h"
#include "cohort/backends/cuda/passes/move_activations.h"
#include "cohort/backends/cuda/passes/seeds_on_card.h"
#include "cohort/backends/cuda/passes/sum_rows.h"
#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// Left to the driver and to the libraries of a card whose memory has no limit.
constexpr size_t kReserve = size_t{256} << 20;

size_t WithoutReserve(size_t bytes) { return bytes - std::min(kReserve, bytes / 8); }

// Returns how much of the card's memory this process may use. It is asked when the process uses the card first, so that
// memory of its own earlier sessions does not count.
size_t UsableBytes(Driver& driver, int card) {
  static Mutex mu;
  static auto* const known = new std::map<std::pair<int64_t, int>, size_t>;  // by the driver's id, and card
  MutexLock lock(mu);
  const std::pair<int64_t, int> key(driver.id(), card);
  if (const auto at = known->find(key); at != known->end()) return at->second;
  return (*known)[key] = WithoutReserve(driver.FreeBytes(card));
}

// Returns the part's share of these bytes of its card.
size_t ShareOf(const DevicePart& part, size_t bytes) {
  if (part.memory_limit > 0) return part.memory_limit;
  return (bytes - std::min(bytes, part.promised)) / part.sharing;
}

// Returns the numbers of the cards that this program can use.
std::vector<int> UsableCards(Driver& driver) {
  std::vector<int> cards;
  for (int i = 0; i < driver.CardCount(); ++i) {
    if (driver.Card(i).problem.empty()) cards.push_back(i);
  }
  return cards;
}

// Returns the number at the end of a physical device's name.
int CardOf(const config::PhysicalDevice& device) { return std::stoi(device.name.substr(device.name.rfind(':') + 1)); }

std::string PhysicalName(const std::string& type, int card) { return StrCat("/physical_device:", type, ":", card); }

// Writes the line that TensorFlow writes, once for each device of the process.
void LogCreated(const std::string& name, int number, const CardInfo& card, size_t memory_limit) {
  static Mutex mu;
  static auto* const written = new std::set<std::pair<std::string, int>>;
  {
    MutexLock lock(mu);
    if (!written->emplace(name, number).second) return;
  }
  LogInfo("cuda", "Created device ", name, " with ", memory_limit >> 20, " MB memory -> physical GPU (device: ", number,
          ", name: ", card.name, ", pci bus id: ", card.pci_bus_id, ", compute capability: ", card.major, ".",
          card.minor, ")");
}

// The physical devices of a machine that has no driver: none, and a line of the log that says so.
std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListNoCards() {
  std::string why;
  if (FindDriver(&why) != nullptr) return {};
  LogInfo("cuda", "no GPU is used: this machine has no NVIDIA driver");
  LogDebug("cuda", why);
  return {};
}

}  // namespace

std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> ListCards() {
  std::vector<std::pair<config::PhysicalDevice, config::DeviceDetails>> cards;
  std::string why;
  Driver* const driver = FindDriver(&why);
  if (driver == nullptr) {
    const std::string line = StrCat("no GPU is used, and all work is done on the CPU: ", why);
    HidesAllCards(VisibleDevices()) ? LogInfo("cuda", line) : LogWarning("cuda", line);
    return cards;
  }
  if (const std::string problem = ProblemOfVisibleDevices(VisibleDevices(), driver->CardCount()); !problem.empty()) {
    LogWarning("cuda", "not all GPUs that were asked for are used: ", problem);
  }
  const std::string& type = CudaBackend::Get().type();
  for (int i = 0; i < driver->CardCount(); ++i) {
    const CardInfo card = driver->Card(i);
    if (!card.problem.empty()) {
      LogWarning("cuda", "GPU ", i, " (", card.name, ", pci bus id: ", card.pci_bus_id,
                 ") is not used: ", card.problem);
      continue;
    }
    cards.push_back({{PhysicalName(type, i), type},
                     {card.name, {card.major, card.minor}, static_cast<int64_t>(card.memory_bytes)}});
  }
  return cards;
}

std::vector<DevicePart> PlanDevices(const std::vector<int>& cards, int count,
                                    const std::vector<config::LogicalSetting>& logical) {
  std::vector<DevicePart> parts;
  std::map<int, size_t> promised;  // bytes of each card that have been given to devices with a limit
  std::map<int, size_t> sharing;   // how many devices of each card have no limit of their own
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    DevicePart part;
    if (logical.empty()) {
      part.card = cards[i % cards.size()];
    } else {
      const config::LogicalSetting& setting = logical[i % logical.size()];
      part.card = CardOf(setting.physical);
      part.memory_growth = setting.memory_growth;
      // More devices than the config has share what is left.
      if (i < logical.size()) part.memory_limit = static_cast<size_t>(setting.memory_limit);
    }
    promised[part.card] += part.memory_limit;
    if (part.memory_limit == 0) ++sharing[part.card];
    parts.push_back(part);
  }
  for (DevicePart& part : parts) {
    part.promised = promised[part.card];
    part.sharing = sharing[part.card];
  }
  return parts;
}

size_t MemoryLimitOf(Driver& driver, const DevicePart& part) {
  return ShareOf(part, UsableBytes(driver, part.card));  // asked also if the part has a limit, before it takes memory
}

CudaBackend& CudaBackend::Get() {
  static auto* const backend = new CudaBackend;
  return *backend;
}

std::vector<std::unique_ptr<Device>> CudaBackend::MakeDevices(const DeviceRequest& request) const {
  Driver* const driver = FindDriver();
  std::vector<std::unique_ptr<Device>> devices;
  if (driver == nullptr) return devices;  // the config has said why (ListCards)
  const std::vector<int> cards = request.logical.empty() ? UsableCards(*driver) : std::vector<int>();
  if (request.logical.empty() && cards.empty()) return devices;
  const std::vector<DevicePart> parts = PlanDevices(cards, request.count, request.logical);
  for (size_t i = 0; i < parts.size(); ++i) {
    const DevicePart& part = parts[i];
    const CardInfo card = driver->Card(part.card);
    CudaDeviceOptions options;
    options.card = part.card;
    options.reserve_all_memory = !part.memory_growth;
    options.intra_op_threads = request.intra_op_threads;
    options.find_memory_limit = [driver, part, card, name = StrCat("/device:", type_, ":", i)] {
      const size_t limit = MemoryLimitOf(*driver, part);
      LogCreated(name, part.card, card, limit);
      return limit;
    };
    DeviceAttributes attributes = AttributesOf(request.task, type_, static_cast<int>(i));
    attributes.memory_limit = static_cast<int64_t>(ShareOf(part, WithoutReserve(card.memory_bytes)));
    devices.push_back(std::make_unique<CudaDevice>(*this, attributes, request.resources, *driver, options));
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
  RegisterGatherNdKernels(registry);
  RegisterTopKKernels(registry);
  RegisterSpecialFunctionKernels(registry);
  RegisterPartitionKernels(registry);
  RegisterScanKernels(registry);
  RegisterTrainingKernels(registry);
  RegisterMatMulKernels(registry);
  RegisterConvolutionKernels(registry);
  RegisterPoolingKernels(registry);
  RegisterImageKernels(registry);
  RegisterBatchNormKernels(registry);
  RegisterLayerNormKernels(registry);
  RegisterNnKernels(registry);
  RegisterKernelsOnHost(registry);
}

// Images stay [batch, rows, columns, channels], so the CPU's choice of their order is left out.
std::unique_ptr<Graph> CudaBackend::Improve(std::unique_ptr<Graph> partition) const {
  partition = SumRowsOnCard(std::move(partition), type_);
  partition = MoveActivations(FuseImageGradients(FuseBiases(std::move(partition), type_), type_), type_);
  partition = CheckValuesFirst(JoinUpdatesOfOptimizers(std::move(partition)), type_);
  return TakeSeedsFromCard(std::move(partition), type_);
}

bool CudaBackend::CanChain(const ChainLink& producer, const ChainLink& consumer) const {
  return CanChainElementwise(producer, consumer);
}

std::unique_ptr<OpKernel> CudaBackend::MakeChain(std::vector<ChainLink> links) const {
  return MakeElementwiseChain(std::move(links));
}

void RegisterIfThereIsADriver() {
  // The driver is asked at the first use of devices, and not before main, where this may run.
  if (LookForDriver() == DriverSigns::kNone) return config::DeviceConfig::Global().AddSource(ListNoCards);
  config::DeviceConfig::Global().AddSource(ListCards);
  const CudaBackend& backend = CudaBackend::Get();
  BackendRegistry::Global().Register(backend);
  backend.RegisterKernels(KernelRegistry::Global());
}

}  // namespace cohort::cuda
