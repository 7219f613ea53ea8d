// CommunicationOptions: how replicas talk, with TensorFlow's names.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"

namespace cohort::distribute {

// kAuto chooses an algorithm by size; kRing is the ring alone. kGloo, where it was found when this was built, moves the
// bytes between processes by Gloo: over sockets of its own, plain and without a handshake, on the server's own address.
// kNccl is a name of TensorFlow's that no build of Cohort has: CheckCommunication always throws for it.
enum class CommunicationImplementation { kAuto, kRing, kGloo, kNccl };
// "AUTO", "RING", "GLOO", "NCCL"; in any case. Throws InvalidArgumentError that lists them.
COHORT_EXPORT CommunicationImplementation ImplementationByName(const std::string& name);

struct COHORT_EXPORT CommunicationOptions {
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;
  int64_t bytes_per_pack = 0;  // of gradients that travel together; 0: chosen by what was measured
  // Of one collective; 0: none - a lost worker ends it all the same. Then DeadlineExceededError.
  double timeout_seconds = 0;
};

// Whether it can be chosen here.
COHORT_EXPORT bool IsBuilt(CommunicationImplementation implementation);
// Throws InvalidArgumentError for an implementation that was not built, with those that were, and for negative numbers.
COHORT_EXPORT void CheckCommunication(const CommunicationOptions& options);
// What collectives take as communication_hint.
COHORT_EXPORT std::string CommunicationHint(const CommunicationOptions& options);

}  // namespace cohort::distribute
