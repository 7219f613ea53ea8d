// CommunicationOptions: how replicas exchange values. The names are TensorFlow's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"

namespace cohort::distribute {

// kAuto chooses by the devices of the replicas: NCCL between processes whose replicas are GPUs with a card each, and
// else an algorithm by the size of a tensor. kRing always uses the ring. kGloo moves the bytes between processes by the
// library Gloo, if this build has it. Gloo has sockets of its own on the server's address, without encryption and
// without a handshake. kNccl demands NVIDIA's library NCCL between processes, and fails where it cannot be used; its
// connections are not encrypted either.
enum class CommunicationImplementation { kAuto, kRing, kGloo, kNccl };
// Returns the implementation "AUTO", "RING", "GLOO" or "NCCL", in upper or lower case. Throws InvalidArgumentError that
// lists the names for another name.
COHORT_EXPORT CommunicationImplementation ImplementationByName(const std::string& name);

// Returns the implementation's name as TensorFlow's log lines have it: "CommunicationImplementation.AUTO".
COHORT_EXPORT std::string ImplementationText(CommunicationImplementation implementation);

// The options of the collectives that the replicas of a strategy run.
struct COHORT_EXPORT CommunicationOptions {
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;
  int64_t bytes_per_pack = 0;  // of gradients that travel together; 0: chosen by what was measured
  // Of one collective; 0: none - a lost worker ends it all the same. Then DeadlineExceededError.
  std::chrono::milliseconds timeout{0};
  // Of one collective without progress: no replica begins it, and no message of it comes. Then DeadlineExceededError,
  // which says what the late worker does. 0: none. If not set: as many seconds as COHORT_PROGRESS_LIMIT says, or else
  // 10 minutes.
  std::optional<std::chrono::milliseconds> progress_limit = {};
};

// Returns true if this build has the implementation.
COHORT_EXPORT bool IsBuilt(CommunicationImplementation implementation);
// Throws InvalidArgumentError for negative numbers, and for an implementation that this build does not have; the error
// lists those that it has.
COHORT_EXPORT void CheckCommunication(const CommunicationOptions& options);
// Returns the `communication_hint` for the ops of collectives.
COHORT_EXPORT std::string CommunicationHint(const CommunicationOptions& options);

}  // namespace cohort::distribute
