// The link of this process to the launcher that has started it. `cohort launch` names a socket in COHORT_HEALTH.
#pragma once

namespace cohort {

// The messages of the link. Each is one packet of one byte.
constexpr char kHealthQuestion = '?';  // from the launcher; it has at most one unanswered question
constexpr char kHealthAnswer = '.';    // from the task
constexpr char kTrainingDone = 'd';    // from the task, at any time

// Begins to answer the launcher's questions, on a thread that runs until this process ends. A stopped process does not
// answer, so the launcher can tell it from a busy one. Does nothing if COHORT_HEALTH is not set, if the launcher cannot
// be reached (the task then counts as one without a server), and in later calls. Thread-safe.
void AnswerLauncher();

// Returns whether a launcher asks this process for its health. It then ends the process if it does not answer any more.
bool HasLauncher();

// Tells the launcher that training is done. Does nothing without a link.
void TellLauncherTrainingDone();

}  // namespace cohort
