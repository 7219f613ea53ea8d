// Default and OneDevice: one replica.
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/strategy_layouts.h"
#include "cohort/distribute/variable_placer.h"

namespace cohort::distribute {
namespace {

class OnOneDevice final : public VariablePlacer {
 public:
  explicit OnOneDevice(std::string device) : device_(std::move(device)) {}
  VariableInfo* Create(const Strategy& /*strategy*/, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override {
    std::optional<DeviceScope> device;
    if (!device_.empty()) device.emplace(graph, device_);
    return next(request);
  }
  bool makes_copies() const override { return false; }
  std::string shared_device() const override { return device_; }

 private:
  const std::string device_;  // "": wherever scopes say
};

}  // namespace

StrategyPtr Default() {
  return std::make_shared<const Strategy>(LayoutOf("DefaultStrategy", {""}, {}), std::make_unique<OnOneDevice>(""));
}

StrategyPtr Default(const ClusterResolver& resolver, const ServerOptions& options) {
  const std::optional<std::string> type = resolver.task_type();
  const std::optional<int> task = resolver.task_id();
  if (!type || !task) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected a resolver that knows which task of the cluster this process is; the cluster is ",
               resolver.cluster_spec().ToString()));
  }
  StrategyLayout layout = LayoutOf("DefaultStrategy", {""}, {});
  ServerOptions server = options;
  server.protocol = resolver.rpc_layer().value_or(options.protocol);
  layout.server = std::make_shared<Server>(resolver.cluster_spec(), *type, *task, server);
  return std::make_shared<const Strategy>(std::move(layout), std::make_unique<OnOneDevice>(""));
}

StrategyPtr OneDevice(const std::string& device) {
  StrategyLayout layout = LayoutOf("OneDeviceStrategy", LocalDevices({device}), {});
  auto placer = std::make_unique<OnOneDevice>(layout.devices[0]);
  return std::make_shared<const Strategy>(std::move(layout), std::move(placer));
}

}  // namespace cohort::distribute
