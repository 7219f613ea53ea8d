// The messages with which a process asks a task for its status. docs/formats.md has the bytes.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/cluster/status/task_status.h"
#include "cohort/cluster/transport.h"

namespace cohort {

// Decode functions throw DataLossError if the header is not what the Encode function makes.

struct StatusRequest {
  uint64_t request = 0;  // a number that the answer repeats
  bool dump = false;     // whether the answer shall have the dump
};
Message EncodeStatusRequest(const StatusRequest& request);
StatusRequest DecodeStatusRequest(const Message& message);

struct StatusReply {
  uint64_t request = 0;
  TaskStatus status;
  std::string dump;  // "" if the request did not ask for it
};
Message EncodeStatus(const StatusReply& reply);
StatusReply DecodeStatus(const Message& message);

}  // namespace cohort
