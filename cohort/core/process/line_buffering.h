// Line buffering of standard output, for programs whose output goes through a pipe.
#pragma once

namespace cohort {

// Makes standard output line-buffered if the environment variable COHORT_LINE_BUFFERED is "1", so that a line that the
// program prints arrives before the program ends. `cohort launch` sets the variable. Only the first call of the process
// looks; the constructors of Server, Session and keras::Model call it. Thread-safe.
void ApplyLineBuffering();

}  // namespace cohort
