// What every example does before its own subject: flags, its place in a cluster, its server.
#pragma once

#include <functional>

#include "cohort/cohort.h"
#include "examples/command_line.h"

namespace examples {

using ClusterFlags = cohort::train::TaskFlags;
using cohort::train::StartTask;
using cohort::train::Task;

void AddClusterFlags(CommandLine& line, ClusterFlags* flags);

// The body of main(): reads the flags and calls `run`, which returns the exit code. An error goes to stderr by name,
// and the exit code is 1; 2 for wrong flags.
int Main(int argc, char** argv, CommandLine& line, const std::function<int()>& run);

}  // namespace examples
