// `cohort inspect PATH`: what a checkpoint, an event file or a TFRecord file holds.
#pragma once

#include <iosfwd>
#include <string>

namespace cohort::tools {

struct InspectOptions {
  bool values = false;  // print values of tensors, buckets of histograms, features of examples
  bool verify = false;  // read every tensor and check its crc32c (events and records always are)
  int max_values = 8;   // of each tensor; also the count of examples printed with `values`
};

// `path` is a checkpoint's prefix, one of its files, a directory (its newest complete checkpoint, and its
// event files), an event file or a TFRecord file. Prints to `out`; problems, with file and offset, to `err`.
// Returns the exit code: 0, or 1 where something is missing, corrupt or cut off. Throws nothing.
int Inspect(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);
// To stdout and stderr.
int Inspect(const std::string& path, const InspectOptions& options);

}  // namespace cohort::tools
