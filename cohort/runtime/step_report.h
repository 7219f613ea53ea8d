// StepReport: what a task says about a step that may be late. Functions that judge the reports of all tasks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/runtime/running_step.h"

namespace cohort {

// The answer of one task to the question what it does for a step (TaskClient::AskAboutStep).
struct StepReport {
  std::string task;    // the full name
  Status answered;     // why the task did not answer, or OK. If it is not OK, only `task` is set besides.
  bool known = false;  // the step has begun on the task and has not ended there
  // The step, if it is known. The stamp is set in any case: it also changes if bytes of the step arrive.
  RunningStep step;
  // If the step is known and does nothing: what threads of the task do for other steps. If the question was about no
  // step: all that the task does.
  std::vector<RunningOperation> others;
  // Why the task hangs (HungThread::DescribeAll), or "" if it does not. Only the answer to a question about no step has
  // it.
  std::string hang;
  bool launcher_ends_it = false;  // a launcher ends the task if it hangs
  std::string stacks;             // if they were asked for: of the threads that may be the reason (see StacksFor)
};

// Returns whether the step of these reports only waits for what other steps do, or for a collective, which has a limit
// of its own. Then it is not late, however long it waits.
bool WaitsForOthers(const std::vector<StepReport>& reports);
// Returns a number that changes if a stamp changes, or if a task answers that did not answer before.
uint64_t StampOf(const std::vector<StepReport>& reports);
// Returns the reports as text: the tasks that work, those that do not answer, and then those that wait. Each names what
// it does and its stacks.
std::string Describe(const std::vector<StepReport>& reports);
// Returns whether a thread works on the operation, so that it does not wait for another task or another step.
bool Works(const RunningOperation& operation);
// Returns "runs node 'x' (MatMul) on /job:ps/...:CPU:0", or "waits ...".
std::string Describe(const RunningOperation& operation);

// Returns the steps of a task as a report about one of them, or about the task if `session` is 0. If `with_stacks`,
// takes stacks, which may take two seconds.
StepReport ReportOn(uint64_t session, int64_t step, std::string task, std::vector<RunningStep> running,
                    bool with_stacks);
// Returns the stacks of the threads that run `operations`, or, if there are none, of all threads of this process that
// are not idle.
std::string StacksFor(const std::vector<RunningOperation>& operations);

}  // namespace cohort
