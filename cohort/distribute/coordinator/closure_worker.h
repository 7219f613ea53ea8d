// ClosureWorker: sends closures to one worker, and finds out when the worker is there again after it was lost. Internal
// to distribute/.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/distribute/coordinator/closure_queue.h"
#include "cohort/distribute/coordinator/coordinator_options.h"
#include "cohort/distribute/coordinator/per_worker.h"
#include "cohort/distribute/strategy.h"

namespace cohort::distribute {

// What all ClosureWorkers of a coordinator share. The coordinator owns it. Thread-safe.
struct ClosureWorkers {
  ClosureWorkers(const Strategy& strategy, const Graph& graph, const CoordinatorOptions& options, size_t workers)
      : strategy(strategy), graph(graph), options(options), run(NewRun()), queue(workers, options.closures_in_flight) {}

  // Returns a random number that is not 0.
  static uint64_t NewRun();

  // Returns the devices of the workers, and a prefix for names that no other coordinator has.
  WorkersOfCoordinator Workers() const;
  // Returns the values of the workers, in the order in which they were made.
  // Those that neither the program nor a function holds any more are forgotten.
  std::vector<std::shared_ptr<PerWorkerSource>> Sources() COHORT_EXCLUDES(mu);
  void AddSource(const std::shared_ptr<PerWorkerSource>& source) COHORT_EXCLUDES(mu);

  const Strategy& strategy;
  const Graph& graph;
  const CoordinatorOptions options;
  const uint64_t run;  // random; part of the ids of closures
  ClosureQueue queue;
  std::atomic<int64_t> lost_elements{0};
  std::atomic<int64_t> repeated_closures{0};
  std::atomic<bool> said_devices{false};    // the log says how many GPUs workers have
  std::atomic<int> workers_that_answer{0};  // all except those that have been broken for options.worker_timeout
  Mutex mu;
  std::vector<std::weak_ptr<PerWorkerSource>> sources COHORT_GUARDED_BY(mu);
  // The incarnations of the devices of parameter servers, by name, as the workers' sessions have last found them.
  Mutex servers_mu;
  std::map<std::string, uint64_t> servers COHORT_GUARDED_BY(servers_mu);
};

// One worker. It has a thread of its own, which takes closures from the queue and starts them by a session that is this
// worker's alone. If a closure fails because the worker or a connection is lost, it goes back to the queue; the session
// is closed, and the thread tries to open another one until the worker answers. The coordinator owns it.
class ClosureWorker {
 public:
  // `ready` is a node on the worker that does nothing. Starts the thread.
  ClosureWorker(ClosureWorkers& shared, int worker, std::string device, Node* ready);
  // Joins the thread. Requires: the queue has stopped.
  ~ClosureWorker();
  ClosureWorker(const ClosureWorker&) = delete;
  ClosureWorker& operator=(const ClosureWorker&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  void Loop();
  // Logs, once for all workers, how many GPUs this worker has. Requires: the session is connected to it.
  void SayDevices();
  // Prepares and starts a closure.
  void Start(const ClosurePtr& closure);
  // Ends the closure with an error, and returns true, if a parameter server that the worker uses was started again
  // since the workers have last looked. Requires: the session is open.
  bool FailIfServerIsNew(const ClosurePtr& closure) COHORT_EXCLUDES(shared_.servers_mu);
  // Starts a closure whose function is prepared. The end of another closure of the session may call it, too.
  void Run(Session* session, const ClosurePtr& closure);
  // Opens the session, initializes the worker's values, and prepares the function, as far as that is not done yet.
  void Prepare(const ClosureFunctionPtr& function);
  // A closure has ended. Starts the next one on this thread if that needs no preparation.
  void OnDone(Session* session, const ClosurePtr& closure, const Status& status, RunResults results);
  // The closure has to run again, because of a lost task or connection.
  void GiveBack(const ClosurePtr& closure, const Status& why);
  // Closes the session, and waits until the worker answers again. Returns false if the queue has stopped.
  bool Recover();
  // Logs that closures do not end on this worker, at first and from time to time.
  void Tell(const Status& why);
  // Ends the coordinator if a task has been missing for too long.
  void CheckLimits(const Status& why);
  // Returns whether `status` says that this worker is lost, or does not say which task is lost.
  bool NamesThisWorker(const Status& status) const;
  // Returns whether `status` says that a task or a connection is lost.
  static bool IsLoss(const Status& status);

  ClosureWorkers& shared_;
  const int worker_;
  const std::string device_;
  Node* const ready_;
  // The members up to counted_out_ are used by the thread alone.
  std::unique_ptr<Session> session_;
  // The functions that are prepared in this session, and the versions of the sources in it. Neither keeps the objects.
  std::set<std::weak_ptr<const ClosureFunction>, std::owner_less<>> prepared_;
  std::map<std::weak_ptr<PerWorkerSource>, int64_t, std::owner_less<>> initialized_;
  bool look_at_servers_ = false;    // the session may have connected to further tasks
  ClosureFunctionPtr keeps_ready_;  // owns ready_function_, so that no other function gets its address
  std::optional<Clock::time_point> failing_since_;
  Clock::time_point tell_again_;                  // if it fails still
  std::optional<Clock::time_point> repaired_at_;  // until the next closure starts
  std::chrono::milliseconds backoff_;
  bool counted_out_ = false;
  std::atomic<const ClosureFunction*> ready_function_{nullptr};  // the one that was prepared last in this session
  std::atomic<bool> worked_{false};                              // a closure has ended since the session was opened
  std::atomic<bool> says_end_{false};                            // the log has said that closures do not end here
  std::atomic<bool> closing_{false};                             // the session is being closed
  std::thread thread_;
};

}  // namespace cohort::distribute
