// Places colocation groups in three rounds (Run). The first round places all groups but those of the other rounds. The
// second round places nodes that read only the shape of their input, near that input. The third round places nodes
// without inputs, near their consumers. A GroupRequest joins the requests of a group. Then the first device is taken
// that fits the request and has all kernels (PlaceGroup). The last part explains failures (Fail).
#include "cohort/runtime/placement/placer.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/device/kernel.h"
#include "cohort/runtime/placement/colocation.h"

namespace cohort {
namespace {

// What a colocation group asks for, and who asked first for each field.
class GroupRequest {
 public:
  explicit GroupRequest(bool soft) : soft_(soft) {}

  const DeviceName& device() const { return device_; }

  void Add(const Node& node) {
    const DeviceName request = DeviceName::Parse(node.device());
    Merge(&DeviceName::job, "jobs", request, node, owners_[0], false);
    Merge(&DeviceName::replica, "replicas", request, node, owners_[1], false);
    Merge(&DeviceName::task, "tasks", request, node, owners_[2], false);
    // Soft placement drops a type or number that the group does not agree on; a number without its type says
    // nothing.
    type_dropped_ = type_dropped_ || !Merge(&DeviceName::type, "types", request, node, owners_[3], soft_);
    id_dropped_ = id_dropped_ || type_dropped_ || !Merge(&DeviceName::id, "numbers", request, node, owners_[4], soft_);
    if (type_dropped_) device_.type.reset();
    if (id_dropped_) device_.id.reset();
  }

 private:
  // False where the requests differ and the field may be dropped.
  template <typename T>
  bool Merge(std::optional<T> DeviceName::*field, const char* what, const DeviceName& request, const Node& node,
             const Node*& owner, bool may_drop) {
    if (!(request.*field) || device_.*field == request.*field) return true;
    if (!(device_.*field)) {
      device_.*field = request.*field;
      owner = &node;
      return true;
    }
    if (may_drop) return false;
    throw InvalidArgumentError(StrCat(
        "[placer] Cannot colocate nodes '", owner->name(), "' (op ", owner->op_name(), ", requested device '",
        owner->device(), "') and '", node.name(), "' (op ", node.op_name(), ", requested device '", node.device(),
        "'): they share a resource or were asked to stand together, and name different device ", what));
  }

  const bool soft_;
  DeviceName device_;
  std::array<const Node*, 5> owners_{};
  bool type_dropped_ = false;
  bool id_dropped_ = false;
};

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<DeviceAttributes>& devices, const PlacementOptions& options)
      : nodes_(graph.nodes()),
        colocation_(graph),
        devices_(devices),
        options_(options),
        placement_(nodes_.size(), nullptr) {
    for (const DeviceAttributes& device : devices_) {
      ranked_.push_back(&device);
      ranks_of_types_.push_back(RankOfTypeNamed(device.type));
    }
    const auto rank = [this](const DeviceAttributes* device) {
      const DeviceName& name = device->name;
      return std::make_tuple(!options_.default_task.Matches(name), name.job, name.replica, name.task,
                             RankOfType(*device), name.type, name.id);
    };
    std::sort(ranked_.begin(), ranked_.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  }

  std::vector<const DeviceAttributes*> Run() {
    std::vector<Node*> metadata;
    std::vector<Node*> generators;
    for (const std::vector<Node*>& group : colocation_.groups()) {
      Node* first = group.front();
      if (group.size() == 1 && first->op().reads_shape_only()) {
        metadata.push_back(first);
      } else if (group.size() == 1 && IsGenerator(*first)) {
        generators.push_back(first);
      } else {
        PlaceGroup(group, nullptr);
      }
    }
    for (Node* node : metadata) PlaceGroup({node}, DeviceOf(*node->input(0).node));
    const std::vector<const DeviceAttributes*> consumers = DeviceOfConsumers();
    for (Node* node : generators) PlaceGroup({node}, consumers[static_cast<size_t>(node->id())]);
    return std::move(placement_);
  }

 private:
  static int RankOfTypeNamed(const std::string& type) {
    const Backend* backend = BackendRegistry::Global().Find(type);
    if (backend != nullptr && backend->takes_unplaced_nodes()) return 0;
    return type == kHostDeviceType ? 1 : 2;
  }
  int RankOfType(const DeviceAttributes& device) const {
    return ranks_of_types_[static_cast<size_t>(&device - devices_.data())];
  }
  static bool IsGenerator(const Node& node) {
    return node.num_inputs() == 0 && node.num_outputs() == 1 && node.output_dtype(0) != DType::kResource;
  }

  const DeviceAttributes* DeviceOf(const Node& node) const { return placement_[static_cast<size_t>(node.id())]; }

  // By node id: where all consumers of the node's values are, null where that is not one place.
  std::vector<const DeviceAttributes*> DeviceOfConsumers() const {
    std::vector<const DeviceAttributes*> common(nodes_.size(), nullptr);
    std::vector<bool> differ(nodes_.size(), false);
    for (const Node* node : nodes_) {
      for (const Output& input : node->inputs()) {
        const auto id = static_cast<size_t>(input.node->id());
        if (common[id] == nullptr) common[id] = DeviceOf(*node);
        if (common[id] != DeviceOf(*node) || differ[id]) {
          differ[id] = true;
          common[id] = nullptr;
        }
      }
    }
    return common;
  }

  // `preferred` is taken where it fits the request; may be null.
  void PlaceGroup(const std::vector<Node*>& group, const DeviceAttributes* preferred) {
    GroupRequest request(options_.allow_soft_placement);
    for (const Node* node : group) request.Add(*node);
    const DeviceAttributes* chosen = nullptr;
    if (preferred != nullptr && Fits(group, request.device(), *preferred)) {
      chosen = preferred;
    } else {
      chosen = FirstFitting(group, request.device());
    }
    if (chosen == nullptr && options_.allow_soft_placement) {
      DeviceName soft = request.device();
      soft.type.reset();
      soft.id.reset();
      chosen = FirstFitting(group, soft);
    }
    if (chosen == nullptr) Fail(group, request.device());
    for (const Node* node : group) placement_[static_cast<size_t>(node->id())] = chosen;
  }

  const DeviceAttributes* FirstFitting(const std::vector<Node*>& group, const DeviceName& request) {
    for (const DeviceAttributes* device : ranked_) {
      if (Fits(group, request, *device)) return device;
    }
    return nullptr;
  }

  bool Fits(const std::vector<Node*>& group, const DeviceName& request, const DeviceAttributes& device) {
    return IsEligible(request, device) &&
           std::all_of(group.begin(), group.end(), [&](const Node* node) { return HasKernel(*node, device.type); });
  }

  bool IsEligible(const DeviceName& request, const DeviceAttributes& device) const {
    return request.Matches(device.name) && (request.type || RankOfType(device) < 2);
  }

  bool HasKernel(const Node& node, const std::string& type) {
    const auto [it, added] = has_kernel_.try_emplace({&node.op(), type}, false);
    if (added) it->second = KernelRegistry::Global().Has(node.op_name(), type);
    return it->second;
  }

  [[noreturn]] void Fail(const std::vector<Node*>& group, const DeviceName& request) {
    std::vector<std::string> names;
    for (const DeviceAttributes* device : ranked_) names.push_back(device->name.ToString());
    const std::string available = StrCat("[ ", StrJoin(names, ", "), names.empty() ? "]" : " ]");
    const auto eligible = [&](const DeviceAttributes* device) { return IsEligible(request, *device); };
    if (std::none_of(ranked_.begin(), ranked_.end(), eligible)) FailRequest(group, request, available);
    for (const Node* node : group) {
      if (std::none_of(ranked_.begin(), ranked_.end(), [&](const DeviceAttributes* device) {
            return IsEligible(request, *device) && HasKernel(*node, device->type);
          })) {
        throw InvalidArgumentError(StrCat(Prefix(*node), "it was requested on '", request.ToString(),
                                          "', where no device has a kernel for op ", node->op_name(),
                                          "; available devices are ", available, "; types with a kernel for it: [",
                                          StrJoin(TypesWithKernel(*node), ", "), "]"));
      }
    }
    throw InvalidArgumentError(StrCat(Prefix(*group.front()), "no device of '", request.ToString(),
                                      "' has kernels for all ", group.size(),
                                      " operations that stand together with it; available devices are ", available));
  }

  [[noreturn]] static void FailRequest(const std::vector<Node*>& group, const DeviceName& request,
                                       const std::string& available) {
    if (request.IsEmpty()) {
      throw InvalidArgumentError(StrCat(Prefix(*group.front()), "it asks for no device and there is none of type ",
                                        kHostDeviceType, "; available devices are ", available));
    }
    // The member whose own words ask for the most of it.
    const Node* culprit = group.front();
    for (const Node* node : group) {
      if (node->device().size() > culprit->device().size()) culprit = node;
    }
    const std::string own = culprit->device();
    std::string together;
    if (own != request.ToString()) together = StrCat(" (with the operations beside it: ", request.ToString(), ")");
    throw InvalidArgumentError(StrCat(Prefix(*culprit), "Operation was explicitly assigned to ", own, together,
                                      " but available devices are ", available,
                                      ". Make sure the device specification refers to a valid device."));
  }

  static std::string Prefix(const Node& node) {
    return StrCat("[placer] Cannot assign a device for operation ", node.name(), " (op ", node.op_name(), "): ");
  }

  std::vector<std::string> TypesWithKernel(const Node& node) {
    std::vector<std::string> types;
    for (const DeviceAttributes* device : ranked_) {
      const bool known = std::find(types.begin(), types.end(), device->type) != types.end();
      if (!known && HasKernel(node, device->type)) types.push_back(device->type);
    }
    return types;
  }

  const std::vector<Node*> nodes_;
  const ColocationGroups colocation_;
  const std::vector<DeviceAttributes>& devices_;
  const PlacementOptions& options_;
  std::vector<int> ranks_of_types_;              // by index in devices_
  std::vector<const DeviceAttributes*> ranked_;  // in the order of preference
  std::vector<const DeviceAttributes*> placement_;
  std::map<std::pair<const OpDef*, std::string>, bool> has_kernel_;
};

}  // namespace

std::vector<const DeviceAttributes*> Place(const Graph& graph, const std::vector<DeviceAttributes>& devices,
                                           const PlacementOptions& options) {
  return Placer(graph, devices, options).Run();
}

std::string PlacementLog(const Graph& graph, const std::vector<const DeviceAttributes*>& placement) {
  std::string log;
  for (const Node* node : graph.nodes()) {
    log += StrCat(node->name(), ": (", node->op_name(),
                  "): ", placement.at(static_cast<size_t>(node->id()))->name.ToString(), "\n");
  }
  return log;
}

}  // namespace cohort
