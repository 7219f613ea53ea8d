// ProcessCluster: a cluster whose tasks are processes of this machine, over real sockets, to be killed, frozen and started
// again one by one. Whatever becomes of the test, no process outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "tests/cluster/launched_program.h"
#include "tools/cohort/port_reservation.h"

namespace cohort::testing {

using Arguments = std::vector<std::string>;

class ProcessCluster {
 public:
  // `jobs`: how many tasks of each job. Their ports of 127.0.0.1 are reserved until the end. `program`: path and arguments
  // of every task. Nothing is started yet.
  explicit ProcessCluster(const std::map<std::string, int>& jobs, Arguments program = ChaosTask());
  ~ProcessCluster();

  static Arguments ChaosTask();

  const ClusterSpec& spec() const { return spec_; }
  const std::string& address(const std::string& job, int index) const { return spec_.task_address(job, index); }
  // "/job:ps/replica:0/task:1", as errors name it.
  static std::string FullName(const std::string& job, int index);
  // What the task finds in TF_CONFIG.
  std::string TFConfig(const std::string& job, int index) const;
  // Tasks are told another address than the reserved one for `job`/`index`, for instance that of a proxy.
  void Advertise(const std::string& job, int index, const std::string& address);

  struct Surroundings {
    Arguments environment;           // {"NAME=value"}
    std::function<void()> in_child;  // runs between fork and exec
  };
  // Starts the task's process, with `more` arguments; one that ran before is killed and forgotten.
  LaunchedProgram& Start(const std::string& job, int index, const Arguments& more = {},
                         const Surroundings& surroundings = {});
  // Starts all tasks that have not been started.
  void StartAll(const Arguments& more = {});
  LaunchedProgram& task(const std::string& job, int index) { return *tasks_.at({job, index}); }

  // SIGKILL; returns when it is dead.
  void Kill(const std::string& job, int index);
  // SIGSTOP; returns when it stands still.
  void Freeze(const std::string& job, int index);
  void Thaw(const std::string& job, int index);

  // Waits until the task has printed `times` lines that begin with `start` ("acked", "failed"). A test that fails here
  // prints what every task has said.
  bool WaitForLines(const std::string& job, int index, const std::string& start, int times);
  int CountLines(const std::string& job, int index, const std::string& start);
  // The last line that begins with `start`, or "".
  std::string LastLine(const std::string& job, int index, const std::string& start);
  // Everything that the tasks have printed, for a failing test's message.
  std::string Describe();

 private:
  using Key = std::pair<std::string, int>;
  const Arguments program_;
  std::map<Key, tools::PortReservation> ports_;
  ClusterSpec spec_;
  std::map<Key, std::unique_ptr<LaunchedProgram>> tasks_;
};

// What a client sees of the CountingModel that a cluster trains: a new session on ps/0 at each call.
struct ModelState {
  int64_t global_step = 0;
  std::vector<int64_t> applied;  // steps applied to each variable
};
ModelState ReadModel(const ClusterSpec& spec, int variables = 4, int64_t size = 4);

// Sets COHORT_TOKEN of this process and so of all that it starts; the test's own clients need it too.
void UseTestToken();

}  // namespace cohort::testing
