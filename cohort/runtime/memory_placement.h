// Memory placement: which values of a partition lie in host memory on a device that has a memory of its own.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort {

// Whether the value lies in host memory on every device: its op says so, its elements are objects (strings, handles),
// or PlaceInMemory has decided so.
bool LiesInHostMemory(const Output& value);

// Sees to it that every input of every node lies where its op wants it on a device whose memory the host cannot read.
// Fed and received values and constants are put where they are needed; elsewhere _ToHost and _ToDevice nodes are added,
// one a value. What goes out (_Send, _Retval) is taken from either memory.
void PlaceInMemory(Graph& graph);

}  // namespace cohort
