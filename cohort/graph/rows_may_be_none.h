// kRowsMayBeNone: the mark of updates of rows of which some indices are no rows.
#pragma once

namespace cohort {

// The attribute, with the value true, of updates of rows whose indices come from a _SumRepeatedRows. The smallest
// number of their dtype then stands for no row, and the update passes over that position. No other index is there
// twice. A graph pass of a backend sets it, for its own kernels: an observer is given updates without such positions.
inline constexpr char kRowsMayBeNone[] = "_rows_may_be_none";

}  // namespace cohort
