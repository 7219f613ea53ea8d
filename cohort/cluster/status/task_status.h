// TaskStatus: what one task of a running cluster says about itself. Plain data; docs/monitoring.md explains each
// figure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

// What a task is doing. If several are true, the last one of this list counts.
enum class TaskActivity : uint8_t {
  kStarting,         // no session has used the task yet
  kIdle,             // no step runs now, and none has ended in the last second
  kRunning,          // a step runs now, or has ended in the last second
  kWaitingForChief,  // no step runs, and the chief is not connected
  kStopping,         // training is done, or this process has got SIGTERM
};
// Returns, for example, "waiting for the chief".
const char* TaskActivityText(TaskActivity activity);

// Something that a running step waits for.
struct WaitStatus {
  bool of_value = false;  // `what` is a value that another task sends; else it is an operation
  std::string what;       // "the value 'dense/MatMul:0'" or "CollectiveReduceV2 'gradients/3'"
  std::string task;       // the full name of the task that has to act; "" if that is not known
};

// A step that runs now.
struct StepStatus {
  uint64_t session = 0;
  int64_t step = 0;
  std::chrono::milliseconds age{0};
  // The time since a kernel of the step has ended on this task, or bytes of the step have come.
  std::chrono::milliseconds without_progress{0};
  bool may_wait = false;  // it waits in a queue, or for a checkpoint: other steps end this wait
  std::vector<WaitStatus> waits;
};

// What a task knows of a peer: a task of its cluster, or a client that is connected.
struct PeerStatus {
  std::string task;     // the full name
  std::string address;  // "" for a client
  bool connected = false;
  std::chrono::milliseconds silent{0};  // the time since the peer's last byte
  uint64_t sent_bytes = 0;              // to the peer, over the connections that are open now
  uint64_t received_bytes = 0;
};

// Shares of the last seconds, each from 0 to 1. In the rest of the time no step ran.
struct TimeShares {
  double data = 0;     // a step waited for its input
  double compute = 0;  // a kernel ran
  double wait = 0;     // all running steps waited for other tasks, or in queues
};

// The figures of one task. Rates and shares are those of the last seconds (kStatusWindow).
struct TaskStatus {
  std::string task;     // the full name, "/job:ps/replica:0/task:0"
  std::string address;  // where it listens
  std::string host;     // the name of the machine
  int64_t pid = 0;
  uint64_t incarnation = 0;
  bool is_chief = false;
  TaskActivity activity = TaskActivity::kStarting;
  std::chrono::milliseconds uptime{0};  // of the server
  std::optional<int64_t> global_step;   // if a variable of this task holds it
  double global_steps_per_second = 0;   // 0 if the task does not hold it
  uint64_t steps = 0;                   // parts of steps that have ended on this task
  double steps_per_second = 0;
  TimeShares shares;
  uint64_t sent_bytes = 0;  // of messages to and from other tasks, also over connections that have closed
  uint64_t received_bytes = 0;
  double sent_per_second = 0;
  double received_per_second = 0;
  uint64_t memory_bytes = 0;  // resident memory of the process
  uint64_t sessions = 0;      // that have registered steps here
  uint64_t variables = 0;
  uint64_t variable_bytes = 0;
  uint64_t restarts = 0;            // how often the launcher has started this task again
  std::string hang;                 // why the process hangs (HungThread::DescribeAll), or "" if it does not
  std::vector<StepStatus> running;  // the oldest first
  uint64_t more_running = 0;        // further running steps, which are not listed
  std::vector<PeerStatus> peers;
};

// The length of the time that rates and shares are about.
inline constexpr std::chrono::seconds kStatusWindow{5};
// A status lists at most so many running steps and peers.
inline constexpr size_t kMostListedSteps = 32;
inline constexpr size_t kMostListedPeers = 4096;

}  // namespace cohort
