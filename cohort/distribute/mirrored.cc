// Mirrored: several replicas in one process, each with a copy of every variable.
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/mirrored_variables.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/strategy_layouts.h"
#include "cohort/ops/array.h"

namespace cohort::distribute {
namespace {

std::string NameOfCopy(const std::string& name, int local) {
  return local == 0 ? name : StrCat(name, "/replica_", local);
}

}  // namespace

VariableInfo* MirroredVariables::Create(const Strategy& strategy, Graph& graph, const VariableMaker& next,
                                        const VariableRequest& request) const {
  if (strategy.num_replicas_in_sync() == 1) {
    const DeviceScope device(graph, strategy.devices()[0]);
    return next(request);
  }
  const ColocateWith nowhere(graph, nullptr);
  const InitialValues initial_values = InitialValuesOf(strategy, graph, request);
  VariableInfo* first = nullptr;
  for (int local = 0; local < strategy.num_local_replicas(); ++local) {
    const DeviceScope device(graph, strategy.devices()[static_cast<size_t>(local)]);
    VariableRequest own = request;
    own.name = NameOfCopy(request.name, local);
    own.initial_value = [&initial_values, local, first] { return initial_values(local, first); };
    VariableInfo* made = next(own);
    if (local == 0) first = made;
  }
  return first;
}

MirroredVariables::InitialValues MirroredVariables::InitialValuesOf(const Strategy& /*strategy*/, Graph& /*graph*/,
                                                                    const VariableRequest& request) const {
  return [&request](int /*local*/, const VariableInfo* first) {
    return first == nullptr ? request.initial_value() : ops::Identity(first->initial_value);
  };
}

ops::Variable MirroredVariables::CopyOf(const Strategy& strategy, const ops::Variable& variable, int local) const {
  const std::string name = NameOfCopy(variable.name(), local);
  for (VariableInfo* info : variable.graph().variables()) {
    if (info->name == name) return ops::Variable(info);
  }
  throw FailedPreconditionError(StrCat("[distribute] expected variable '", variable.name(),
                                       "' to have been made in the scope of ", strategy.name(), "; replica ", local,
                                       " has no part of it"));
}

StrategyPtr Mirrored(const MirroredOptions& options) {
  StrategyLayout layout = LayoutOf("MirroredStrategy", LocalDevices(options.devices), options.communication);
  LogInfo("distribute", "Using MirroredStrategy with devices ", Quoted(layout.devices));
  return std::make_shared<const Strategy>(std::move(layout), std::make_unique<MirroredVariables>());
}

StrategyPtr Mirrored(const std::vector<std::string>& devices) { return Mirrored(MirroredOptions{.devices = devices}); }

StrategyPtr MirroredOnCpus(int replicas) {
  if (replicas < 1 || replicas > kMostReplicas) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected a number of replicas from 1 to ", kMostReplicas, "; got ", replicas));
  }
  return Mirrored(DevicesOf("", kHostDeviceType, replicas));
}

}  // namespace cohort::distribute
