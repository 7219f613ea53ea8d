// Prints the contents of a checkpoint, a SavedModel, an event file or a TFRecord file (`cohort inspect PATH`).
#pragma once

#include <iosfwd>
#include <string>

namespace cohort::tools {

struct InspectOptions {
  bool values = false;  // print values of tensors, buckets of histograms, features of examples
  bool verify = false;  // read every tensor and check its crc32c (events and records are always checked)
  int max_values = 8;   // values of each tensor to print; also the number of examples to print
};

// Inspects `path`, which is a checkpoint's prefix, one of its files, an event file, a TFRecord file, the folder
// of a SavedModel, or another directory. For another directory it inspects the newest complete checkpoint and the event
// files. Prints to `out`. Prints problems, with file and offset, to `err`. Returns the exit code: 0, or 1 if something
// is missing, corrupt or cut off. Throws nothing.
int Inspect(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err);
// As above, with stdout and stderr.
int Inspect(const std::string& path, const InspectOptions& options);

}  // namespace cohort::tools
