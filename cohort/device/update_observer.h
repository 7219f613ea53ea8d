// UpdateObserver: is given every update of a task's variables as data, in the order in which the updates were applied.
// UpdateSet, UpdateRecord: such data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/device/client_id.h"
#include "cohort/graph/attr_value.h"

namespace cohort {

class Device;

// What an update does, whatever the values. UpdateRecords of the same node may share one UpdateOp.
struct COHORT_EXPORT UpdateOp {
  std::string op;    // "ResourceApplyAdam"
  std::string node;  // its name in the graph, for messages
  AttrMap attrs;     // the attributes of the node that the op declares
};

// The names by which the task's ResourceManager finds a variable.
struct COHORT_EXPORT VariableId {
  std::string container;
  std::string name;
  friend bool operator==(const VariableId&, const VariableId&) = default;
};

// One update that was applied: an op that changes variables, and all that the op needs to do the same change again. The
// definition of the op says which of its inputs are handles of variables: `variables` has these in the op's order, and
// `inputs` has all others in the op's order.
//
// The inputs are the step's own tensors and not copies. The engine never writes over them as long as the record holds
// them. They lie where the op wants them: in the memory of UpdateSet::device, or in host memory. An input
// that the program has fed shares the memory of the program's tensor.
struct COHORT_EXPORT UpdateRecord {
  std::shared_ptr<const UpdateOp> op;
  std::vector<VariableId> variables;
  std::vector<Tensor> inputs;
};

// The updates that one step has applied on one device of the task without a wait or a send in between. Most steps make
// one set. A step that waits between two of its updates, because the second one needs a value from another task, or
// that sends a value between them, makes one set before and one after it; both have the step's sequence number.
struct COHORT_EXPORT UpdateSet {
  int64_t position = 0;  // 1, 2, 3... in the order in which the sets of the task were applied
  StepOrigin origin;     // the session of the step; empty if a test has run a plan without a session
  // The number of the step in the session `origin`. All sets of one step have the same number, also those of all runs
  // of a step that its task repeats (RunOptions::repeat_on_task). If the client starts each step of the session only
  // after the step before has ended, a later set never has a smaller number.
  int64_t sequence = 0;
  std::string device_name;   // "/job:ps/replica:0/task:0/device:CPU:0"
  Device* device = nullptr;  // its CopyToHost reads inputs that lie in its memory; lives until the task ends
  std::vector<UpdateRecord> updates;
};

// A program that wants to see the updates of a task derives from this class and gives an object to
// ServerOptions::update_observer, or to UpdateGate::SetObserver. If a program applies the records of all sets, one
// after the other, with the kernels of the same ops to variables that were equal at the start, then the variables are
// equal afterwards, bit for bit.
//
// Each set comes exactly once. It comes before the step is acknowledged, before the step sends a value that depends on
// the set to another device or task, and before the step leaves the update gate; so a checkpoint contains exactly the
// sets that came before its cut. Only the step itself waits until its set has come: another step may read a variable,
// and send its value, before the set that has changed the variable comes.
//
// Updates that were not applied, because their step had failed or was cancelled, are in no set. To clear a container
// is not an update.
//
// While a task has an observer its steps take turns: no two steps change variables at the same time, and sparse updates
// of different rows do not overlap. On a device with streams a turn lasts until the stream has run the updates. Without
// an observer a step looks at one flag for each of its updates.
class COHORT_EXPORT UpdateObserver {
 public:
  virtual ~UpdateObserver() = default;
  // Called by one thread at a time, on the thread that has applied the set, while no other step of the task may update.
  // The observer must not run steps of the task here, nor close its update gate. If it throws, the step fails with that
  // error, although its updates have been applied.
  virtual void OnUpdates(UpdateSet set) = 0;
};

}  // namespace cohort
