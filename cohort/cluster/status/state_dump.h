// DumpStateOnSignal: prints what this process does when it gets SIGUSR1.
#pragma once

#include "cohort/core/export.h"

namespace cohort {

// Installs a handler for SIGUSR1. When the process gets the signal, a thread of its own prints to stderr what the
// servers of this process do: their steps with the time since the last progress, the values and collectives that they
// wait for with the tasks that owe them, sessions with their leases, memory, and the stacks of all threads. A process
// without a server prints the stacks. Does nothing if the program has a handler for SIGUSR1 of its own, or ignores the
// signal. Later calls do nothing. Thread-safe.
COHORT_EXPORT void DumpStateOnSignal();

}  // namespace cohort
