#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/runtime/local_task.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/task_client.h"

namespace cohort {
namespace {

// The target "": devices of this process that belong to this session alone.
class OwnDevices final : public ClusterView {
 public:
  explicit OwnDevices(const SessionConfig& config) {
    auto resources = std::make_shared<TaskResources>();
    auto devices = std::make_shared<DeviceSet>(BackendRegistry::Global().MakeDevices(
        default_task(), config.device_count, config.intra_op_parallelism_threads, resources, "session"));
    task_ = std::make_shared<LocalTask>(ClientId{default_task().ToString(), NewIncarnation()}, std::move(devices),
                                        std::move(resources));
  }

  DeviceName default_task() const override {
    DeviceName name;
    name.job = "localhost";
    name.replica = 0;
    name.task = 0;
    return name;
  }
  std::vector<DeviceName> tasks() const override { return {default_task()}; }
  std::shared_ptr<TaskClient> Connect(const DeviceName& task, std::chrono::steady_clock::time_point) override {
    if (task != default_task()) {
      throw InvalidArgumentError(StrCat("[session] ", task.ToString(),
                                        " was asked for, but this session has no target: "
                                        "it runs on ",
                                        task_->name(), " alone. Give it a server's Target()"));
    }
    return task_;
  }

 private:
  std::shared_ptr<LocalTask> task_;
};

}  // namespace

SessionFactories& SessionFactories::Global() {
  static auto* const factories = new SessionFactories;
  return *factories;
}

void SessionFactories::Register(const std::string& scheme, ClusterViewFactory factory) {
  factories_[scheme] = std::move(factory);
}

std::unique_ptr<ClusterView> SessionFactories::Make(const std::string& target, const SessionConfig& config) const {
  if (target.empty()) return std::make_unique<OwnDevices>(config);
  for (const auto& [scheme, factory] : factories_) {
    if (target.rfind(scheme, 0) == 0) return factory(target, config);
  }
  std::string known = "\"\"";
  std::string meant;
  for (const auto& [scheme, factory] : factories_) {
    known += StrCat(", ", scheme, "host:port");
    // "grpc/host:port" for "grpc://host:port", and the like.
    const std::string protocol = scheme.substr(0, scheme.find(':'));
    const size_t address = target.find_first_not_of(":/", protocol.size());
    if (target.rfind(protocol, 0) == 0 && address != std::string::npos && address > protocol.size()) {
      meant = StrCat("; did you mean \"", scheme, target.substr(address), "\"?");
    }
  }
  throw NotFoundError(StrCat("No session factory registered for the given session options: {target: \"", target,
                             "\"}; a target is one of ", known, meant));
}

}  // namespace cohort
