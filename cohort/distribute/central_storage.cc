// CentralStorage: several replicas that share one copy of each variable.
#include "cohort/core/logging.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/strategy_layouts.h"
#include "cohort/distribute/variable_placer.h"

namespace cohort::distribute {
namespace {

class OnParameterDevice final : public VariablePlacer {
 public:
  explicit OnParameterDevice(std::string device) : device_(std::move(device)) {}
  VariableInfo* Create(const Strategy& /*strategy*/, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override {
    const ColocateWith nowhere(graph, nullptr);
    const DeviceScope device(graph, device_);
    return next(request);
  }
  bool makes_copies() const override { return false; }
  std::string shared_device() const override { return device_; }
  std::vector<std::string> devices() const override { return {device_}; }

 private:
  const std::string device_;
};

}  // namespace

StrategyPtr CentralStorage(const CentralStorageOptions& options) {
  StrategyLayout layout =
      LayoutOf("CentralStorageStrategy", LocalDevices(options.compute_devices), options.communication);
  const std::string parameters = LocalDevices({options.parameter_device}).front();
  LogInfo("distribute", "CentralStorageStrategy with compute_devices = ", Quoted(layout.devices),
          ", variable_device = '", parameters, "'");
  return std::make_shared<const Strategy>(std::move(layout), std::make_unique<OnParameterDevice>(parameters));
}

}  // namespace cohort::distribute
