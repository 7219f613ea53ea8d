// Default and OneDevice: one replica.
#include <optional>

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

StrategyPtr OneDevice(const std::string& device) {
  StrategyLayout layout = LayoutOf("OneDeviceStrategy", LocalDevices({device}), {});
  auto placer = std::make_unique<OnOneDevice>(layout.devices[0]);
  return std::make_shared<const Strategy>(std::move(layout), std::move(placer));
}

}  // namespace cohort::distribute
