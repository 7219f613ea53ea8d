#include "cohort/runtime/session.h"

#include <atomic>

#include "cohort/core/line_buffering.h"
#include "cohort/core/logging.h"
#include "cohort/runtime/master.h"

namespace cohort {

void WarnOfFieldsWithoutEffect(const SessionConfig& config) {
  static std::atomic<bool> warned{false};
  if (config.inter_op_parallelism_threads == 0 || warned.exchange(true)) return;
  LogWarning("session", "inter_op_parallelism_threads = ", config.inter_op_parallelism_threads,
             " has no effect: a device runs one kernel at a time; intra_op_parallelism_threads says with how many "
             "threads");
}

std::vector<Tensor> Callable::operator()(const std::vector<Tensor>& feeds) const {
  return prepared_->master->RunStep(*prepared_, feeds, {});
}

Session::Session(const Graph& graph, const std::string& target, const SessionConfig& config)
    : master_(std::make_unique<Master>(graph, target, config)) {
  ApplyLineBuffering();
  WarnOfFieldsWithoutEffect(config);
}

Session::~Session() = default;

std::vector<Tensor> Session::Run(const FeedList& feeds, const std::vector<Output>& fetches,
                                 const std::vector<Node*>& targets, const RunOptions& options) {
  return master_->RunStep(master_->Prepare(feeds, fetches, targets), feeds, options);
}

Callable Session::MakeCallable(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                               const std::vector<Node*>& targets) {
  FeedList without_values;
  for (const Output& feed : feeds) without_values.emplace_back(feed, Tensor());
  return Callable(master_->Prepare(without_values, fetches, targets));
}

std::vector<DeviceAttributes> Session::ListDevices() { return master_->ListDevices(); }

const Graph& Session::graph() const { return master_->graph(); }

void Session::Close() { master_->Close(); }

void Session::Reset(const std::string& target, const std::vector<std::string>& containers,
                    const SessionConfig& config) {
  const std::unique_ptr<ClusterView> view = SessionFactories::Global().Make(target, config);
  const auto timeout = std::chrono::duration<double>(config.connect_timeout_secs);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(timeout);
  for (const DeviceName& task : view->tasks()) {
    const std::shared_ptr<TaskClient> client = view->Connect(task, deadline);
    if (containers.empty()) client->ResetContainer("");
    for (const std::string& container : containers) client->ResetContainer(container);
  }
}

}  // namespace cohort
