// Functions that every example calls first: they read the flags, find the task in its cluster, and start its server.
#pragma once

#include <functional>

#include "cohort/cohort.h"
#include "examples/command_line.h"

namespace examples {

using ClusterFlags = cohort::train::TaskFlags;
using cohort::train::StartTask;
using cohort::train::Task;

// Adds the flags that describe the cluster and this task. `flags` must live until Parse has returned.
void AddClusterFlags(CommandLine& line, ClusterFlags* flags);

// Says on stderr, for a training that has made no step, that its variables have reached the step `last_step` already.
// `flag` is the flag that sets this step. Does nothing if they have not.
void SayIfDone(int64_t step, int64_t last_step, const std::string& flag);

// The body of main(). Reads the flags, calls `run` and returns its result, which is the exit code. Returns 2 for wrong
// flags. If `run` throws, prints the error to stderr and returns 1.
int Main(int argc, char** argv, CommandLine& line, const std::function<int()>& run);

}  // namespace examples
