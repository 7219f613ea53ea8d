// A step clock: it counts the steps of all sessions that train one model, and lets no session run more than a given
// number of steps ahead of the slowest one. A chief record: says which session leads a training. TensorFlow has no such
// ops. Clocks and records live in the ResourceManager of the task of their device, and follow the sessions that use
// them: what a session has there ends with the session, also if its process dies.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns the handle (resource scalar) of the clock `shared_name` of the default container. The nodes of the functions
// below are placed on the device of `clock`.
COHORT_EXPORT Output StepClock(Graph& graph, const std::string& shared_name = "", const NodeName& name = "StepClock");
// Adds a node that makes the clock count the step's session, until the session ends. The session begins with the number
// of the slowest one.
COHORT_EXPORT Node* StepClockJoin(Output clock, const NodeName& name = "StepClockJoin");
// Adds a node that counts a step of its session. Then it waits until one more step would bring the session at most
// `limit` steps ahead of the slowest session that has not ended. If `limit` is less than 1, it does not wait.
// `staleness` (int64 scalar) is recorded. No thread is blocked by the wait, which ends with an error as the waits of a
// Queue do.
COHORT_EXPORT Node* StepClockTick(Output clock, const Operand& staleness, int64_t limit,
                                  const NodeName& name = "StepClockTick");
// Returns the staleness of all ticks since the last call (int64 [n]), but of not more than the last 100 000.
COHORT_EXPORT Output StepClockTakeStaleness(Output clock, const NodeName& name = "StepClockTakeStaleness");

// Returns the handle (resource scalar) of the chief record `shared_name` of the default container. The nodes of the
// functions below are placed on the device of `record`.
COHORT_EXPORT Output ChiefRecord(Graph& graph, const std::string& shared_name = "",
                                 const NodeName& name = "ChiefRecord");
// Adds a node that waits until no other session holds the record. From then on the step's session holds it, until the
// session ends. `holder` and `description` (string scalars) are written into the record. No thread is blocked by the
// wait, which ends with an error as the waits of a Queue do.
COHORT_EXPORT Node* ChiefRecordHold(Output record, const Operand& holder, const Operand& description,
                                    const NodeName& name = "ChiefRecordHold");
// Returns what was written last: the holder ("" if its session has ended, or there was none) and the description ("" if
// there was none). Both are string scalars.
struct COHORT_EXPORT ChiefRecordText {
  Output holder;
  Output description;
};
COHORT_EXPORT ChiefRecordText ChiefRecordRead(Output record, const NodeName& name = "ChiefRecordRead");

}  // namespace cohort::ops
