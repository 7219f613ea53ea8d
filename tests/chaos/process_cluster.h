// ProcessCluster: a cluster whose tasks are processes of this machine, which talk over real sockets. A test can kill,
// freeze and restart each of them. No process outlives the test, however the test ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/port_reservation.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {

using Arguments = std::vector<std::string>;

class ProcessCluster {
 public:
  // `jobs` is the number of tasks of each job. Their ports of 127.0.0.1 are reserved until the end. `program` is the
  // path and the arguments of every task. Starts nothing.
  explicit ProcessCluster(const std::map<std::string, int>& jobs, Arguments program = ChaosTask());
  ~ProcessCluster();

  static Arguments ChaosTask();

  const ClusterSpec& spec() const { return spec_; }
  const std::string& address(const std::string& job, int index) const { return spec_.task_address(job, index); }
  // Returns "/job:ps/replica:0/task:1", the name in errors.
  static std::string FullName(const std::string& job, int index);
  // Returns the TF_CONFIG of the task.
  std::string TFConfig(const std::string& job, int index) const;
  // Tells the tasks another address for `job`/`index` than the reserved one, for example that of a proxy.
  void Advertise(const std::string& job, int index, const std::string& address);

  struct Surroundings {
    Arguments environment;           // {"NAME=value"}
    std::function<void()> in_child;  // runs between fork and exec
  };
  // Starts the task's process, with `more` arguments. If one runs already, kills it first.
  LaunchedProgram& Start(const std::string& job, int index, const Arguments& more = {},
                         const Surroundings& surroundings = {});
  // Starts all tasks that have not been started.
  void StartAll(const Arguments& more = {});
  LaunchedProgram& task(const std::string& job, int index) { return *tasks_.at({job, index}); }

  // Kills the task. Returns when it is dead.
  void Kill(const std::string& job, int index);
  // Stops the task with SIGSTOP. Returns when it has stopped.
  void Freeze(const std::string& job, int index);
  void Thaw(const std::string& job, int index);

  // Waits until the task has printed `times` lines that begin with `start` ("acked", "failed"). Returns false if it has
  // not done so in time. Then the test prints the output of every task.
  bool WaitForLines(const std::string& job, int index, const std::string& start, int times);
  int CountLines(const std::string& job, int index, const std::string& start);
  // Returns the last line that begins with `start`, or "".
  std::string LastLine(const std::string& job, int index, const std::string& start);
  // Returns all output of the tasks, for the message of a failing test.
  std::string Describe();

 private:
  using Key = std::pair<std::string, int>;
  const Arguments program_;
  std::map<Key, PortReservation> ports_;
  ClusterSpec spec_;
  std::map<Key, std::unique_ptr<LaunchedProgram>> tasks_;
};

// The state of the CountingModel that a cluster trains, as a client reads it. Each call opens a new session on ps/0.
struct ModelState {
  int64_t global_step = 0;
  std::vector<int64_t> applied;  // steps applied to each variable
};
ModelState ReadModel(const ClusterSpec& spec, int variables = 4, int64_t size = 4);

// Sets COHORT_TOKEN of this process, and so of all processes that it starts. The test's own clients need it, too.
void UseTestToken();

}  // namespace cohort::testing
