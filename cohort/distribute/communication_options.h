// CommunicationOptions: how replicas talk, with TensorFlow's names.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cohort::distribute {

// kAuto chooses an algorithm by size; kRing is the ring alone. kGloo, where it was found when this was built, moves the
// bytes between processes by Gloo: over sockets of its own, plain and without a handshake, on the server's own address.
// kNccl is a name of TensorFlow's that no build of Cohort has: CheckCommunication always throws for it.
enum class CommunicationImplementation { kAuto, kRing, kGloo, kNccl };
// "AUTO", "RING", "GLOO", "NCCL"; in any case. Throws InvalidArgumentError that lists them.
CommunicationImplementation ImplementationByName(const std::string& name);

struct CommunicationOptions {
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;
  int64_t bytes_per_pack = 0;  // of gradients that travel together; 0: chosen by what was measured
  // Of one collective; 0: none - a lost worker ends it all the same. Then DeadlineExceededError.
  std::chrono::milliseconds timeout{0};
};

// Whether it can be chosen here.
bool IsBuilt(CommunicationImplementation implementation);
// Throws InvalidArgumentError for an implementation that was not built, with those that were, and for negative numbers.
void CheckCommunication(const CommunicationOptions& options);
// What collectives take as communication_hint.
std::string CommunicationHint(const CommunicationOptions& options);

}  // namespace cohort::distribute
