// The cluster file: by which `cohort status --logdir=FOLDER` finds the cluster that trains into a folder.
#pragma once

#include <string>

#include "cohort/cluster/cluster_spec.h"

namespace cohort {

// The name of the file in the folder. docs/formats.md has its contents.
inline constexpr const char* kClusterFile = "cluster.json";

// What the file says.
struct ClusterFile {
  ClusterSpec cluster;
  std::string token_file;  // the path of the file with the job's token; "" if the usual one has it
};

// Writes the file, and makes the folder if it is missing. Throws what WriteFileAtomically throws.
void WriteClusterFile(const std::string& folder, const ClusterFile& file);
// Throws NotFoundError if the folder has no such file, and InvalidArgumentError, with the path, if its contents are not
// what WriteClusterFile writes.
ClusterFile ReadClusterFile(const std::string& folder);

}  // namespace cohort
