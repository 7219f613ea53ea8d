#include "cohort/runtime/session.h"

#include <atomic>
#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/line_buffering.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/execution/step_trace.h"
#include "cohort/runtime/master.h"
#include "cohort/runtime/program_activity.h"

namespace cohort {

void WarnOfFieldsWithoutEffect(const SessionConfig& config) {
  static std::atomic<bool> warned{false};
  if (config.inter_op_parallelism_threads == 0 || warned.exchange(true)) return;
  LogWarning("session", "inter_op_parallelism_threads = ", config.inter_op_parallelism_threads,
             " has no effect: a device runs one kernel at a time; intra_op_parallelism_threads says with how many "
             "threads");
}

namespace {

// Returns a new trace if the options ask for one, else null.
std::shared_ptr<StepTrace> TraceFor(const RunOptions& options) {
  return options.trace_level == TraceLevel::kNoTrace ? nullptr : std::make_shared<StepTrace>();
}

RunResults ResultsOf(std::vector<Tensor> values, const std::shared_ptr<const std::vector<Output>>& fetches,
                     const std::shared_ptr<StepTrace>& trace) {
  RunResults results(std::move(values), fetches);
  if (trace != nullptr) results.set_run_metadata(std::make_shared<const RunMetadata>(RunMetadata{trace->Take()}));
  return results;
}

// Makes the master. It may have to wait for a task.
std::unique_ptr<Master> MakeMaster(const Graph& graph, const std::string& target, const SessionConfig& config) {
  const ProgramActivity::Call call;
  return std::make_unique<Master>(graph, target, config);
}

}  // namespace

const RunMetadata& RunResults::run_metadata() const {
  static const RunMetadata empty;
  return metadata_ == nullptr ? empty : *metadata_;
}

const Tensor& RunResults::operator[](const Output& fetch) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if ((*fetches_)[i] == fetch) return values_[i];
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < values_.size(); ++i) names.push_back((*fetches_)[i].name());
  throw InvalidArgumentError(StrCat("[session] expected a value that this run has fetched; got ",
                                    fetch.valid() ? fetch.name() : "an invalid Output",
                                    "; fetched were: ", names.empty() ? "none" : StrJoin(names, ", ")));
}

RunResults Callable::operator()(const std::vector<Tensor>& feeds, const NextFeeds& next) const {
  return RunResults(prepared_->master->RunStep(*prepared_, feeds, {}, nullptr, next), prepared_->fetches);
}

void Callable::DropNext() const {
  for (const PreparedSignature::Part& part : prepared_->parts) part.task->DropNext(part.key);
}

Session::Session(const Graph& graph, const std::string& target, const SessionConfig& config)
    : master_(MakeMaster(graph, target, config)) {
  ApplyLineBuffering();
  WarnOfFieldsWithoutEffect(config);
}

Session::~Session() = default;

RunResults Session::Run(const FeedList& feeds, const std::vector<Output>& fetches, const std::vector<Node*>& targets,
                        const RunOptions& options) {
  if (interceptor_ != nullptr) return RunIntercepted({feeds, fetches, targets, options});
  const PreparedSignature& prepared = master_->Prepare(feeds, fetches, targets);
  const auto trace = TraceFor(options);
  return ResultsOf(master_->RunStep(prepared, feeds, options, trace), prepared.fetches, trace);
}

RunResults Session::RunIntercepted(RunRequest request) {
  const size_t wanted = request.fetches.size();
  interceptor_->BeforeRun(&request);
  RunResults results;
  try {
    const PreparedSignature& prepared = master_->Prepare(request.feeds, request.fetches, request.targets);
    const auto trace = TraceFor(request.options);
    results = ResultsOf(master_->RunStep(prepared, request.feeds, request.options, trace), prepared.fetches, trace);
  } catch (...) {
    interceptor_->AfterRun(request, Status::FromCurrentException(), {});
    throw;
  }
  interceptor_->AfterRun(request, Status(), results);
  results.Truncate(wanted);
  return results;
}

void Session::RunAsync(RunRequest request, RunDone done) {
  const size_t wanted = request.fetches.size();
  const auto kept = std::make_shared<RunRequest>(std::move(request));
  const std::shared_ptr<RunInterceptor> interceptor = interceptor_;
  // Shared with the run: called once, by it or by the error that keeps it from starting.
  const auto finish = std::make_shared<std::function<void(Status, RunResults)>>(
      [kept, wanted, interceptor, done](Status status, RunResults results) {
        try {
          if (interceptor != nullptr) interceptor->AfterRun(*kept, status, results);
        } catch (...) {
          if (status.ok()) status = Status::FromCurrentException();
        }
        if (!status.ok()) results = RunResults();
        if (results.size() > wanted) results.Truncate(wanted);
        done(status, std::move(results));
      });
  if (interceptor != nullptr) {
    kept->options.repeat_on_task = false;  // it sees each run
    try {
      interceptor->BeforeRun(kept.get());
    } catch (...) {
      return done(Status::FromCurrentException(), {});
    }
  }
  try {
    const PreparedSignature& prepared = master_->Prepare(kept->feeds, kept->fetches, kept->targets);
    const auto trace = TraceFor(kept->options);
    master_->StartStep(prepared, kept->feeds, kept->options, trace,
                       [finish, trace, fetches = prepared.fetches](const Status& status, std::vector<Tensor> values) {
                         (*finish)(status, ResultsOf(std::move(values), fetches, trace));
                       });
  } catch (...) {
    (*finish)(Status::FromCurrentException(), {});
  }
}

void Session::CancelRuns(const Status& why) { master_->CancelStarted(why); }

void Session::SetInterceptor(std::shared_ptr<RunInterceptor> interceptor) { interceptor_ = std::move(interceptor); }

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
  const auto deadline = DeadlineAfter(config.connect_timeout);
  for (const DeviceName& task : view->tasks()) {
    const std::shared_ptr<TaskClient> client = view->Connect(task, deadline);
    if (containers.empty()) client->ResetContainer("");
    for (const std::string& container : containers) client->ResetContainer(container);
  }
}

}  // namespace cohort
