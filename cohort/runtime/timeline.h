// Shows what a traced run has recorded (RunOptions::trace_level) as a timeline. It follows TensorFlow's
// tensorflow.python.client.timeline.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/runtime/step_stats.h"

namespace cohort {

struct COHORT_EXPORT TimelineOptions {
  bool show_dataflow = true;  // arrows from each node to the nodes that read its values, also between tasks
  // For each device, a curve of the bytes of all outputs that still have a reader. It is computed from the sizes of the
  // outputs, so memory that a kernel uses for itself is not in it, and a view counts like a copy.
  bool show_memory = false;
};

// Returns the timeline as JSON in Chrome's Trace Event Format, which chrome://tracing and https://ui.perfetto.dev open.
// Each device is a process row, and has as many lines as it had nodes at work at the same time. Each execution of a
// node is one event: it is named by the op, and its args have the node's name and inputs. Times begin at the first
// event; otherData.start_nanos says when that was, in nanoseconds since 1970. Each task has measured by its own clock.
COHORT_EXPORT std::string ChromeTraceFormat(const StepStats& stats, const TimelineOptions& options = {});

}  // namespace cohort
