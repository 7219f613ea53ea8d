// Whether the collectives of a group go through the library, and why not. Internal to nccl/.
#pragma once

#include <string>
#include <vector>

#include "cohort/collective/algorithm.h"

namespace cohort::collective {

// What one member tells the others before the group forms, as text in JoinMessage::endpoints.
struct NcclEndpoint {
  std::string missing;  // why the member cannot use the library, or ""
  std::string device;   // its physical device
  std::string id;       // of the communicator; only rank 0 makes one
};

std::string EncodeEndpoint(const NcclEndpoint& endpoint);
// Throws DataLossError for a text that EncodeEndpoint does not make.
NcclEndpoint DecodeEndpoint(const std::string& text);

// What all members do. It follows from what all of them know, so they choose the same.
struct NcclChoice {
  bool uses_library = false;
  std::string id;
  int missing_at = -1;  // the first rank that cannot use the library
  int rank = -1;        // two ranks that share a physical device
  int same_as = -1;
};

// Requires: `members` and `locations` have one entry for each rank.
NcclChoice Choose(const std::vector<NcclEndpoint>& members, const std::vector<Location>& locations);

}  // namespace cohort::collective
