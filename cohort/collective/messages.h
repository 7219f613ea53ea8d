// The messages that members of a group exchange; docs/formats.md has the byte layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/transport.h"
#include "cohort/collective/call.h"
#include "cohort/collective/schedule.h"

namespace cohort::collective {

enum class Kind : uint16_t {
  kJoin = kFirstServiceKind,  // a process to each other process of the group
  kData,                      // a step of a plan; one tensor
  kAbort,                     // the group has failed
  kLeave,                     // a process takes no further part; a small and a large message
  kFarewell,                  // to one that leaves a group that Gloo serves
  kSchedule,                  // from one whose schedule is not that of what it has got
};
inline constexpr uint16_t kLastKind = static_cast<uint16_t>(Kind::kSchedule);

struct GroupRef {
  int64_t key = 0;
  int64_t generation = 0;
  friend auto operator<=>(const GroupRef&, const GroupRef&) = default;  // NOLINT(modernize-use-nullptr)
};

struct JoinMessage {
  GroupRef group;
  std::string task;                  // who joins
  std::string host;                  // of who joins (host_identity.h); "": it is on one of its own
  std::vector<std::string> members;  // full device names, by rank
  std::vector<ScheduleEntry> schedule;
  Algorithm algorithm = Algorithm::kAuto;   // GroupOptions::algorithm
  std::vector<std::string> gloo_endpoints;  // of who joins, where it is kGloo (gloo_calls.h)
};

struct DataMessage {
  GroupRef group;
  CallId call;
  int32_t from = 0;  // ranks
  int32_t to = 0;
  int32_t sequence = 0;
  Signature signature;    // the sender's
  uint64_t schedule = 0;  // fingerprint of the sender's; 0: none
};

struct AbortMessage {
  GroupRef group;
  Status why;
};

// Sent after all other messages of the connection: when it is handled, all that was sent before was handled too.
struct LeaveMessage {
  GroupRef group;
};

// Nothing is under way any more that the one who leaves has taken part in: it may close its connections.
struct FarewellMessage {
  GroupRef group;
};

// What `from` runs by the schedule `ours` came together with what `to` runs by `theirs`, both fingerprints.
struct ScheduleMessage {
  GroupRef group;
  int32_t from = 0;  // ranks
  int32_t to = 0;
  uint64_t ours = 0;
  uint64_t theirs = 0;
  bool agreed = false;                 // else `to` compares
  std::vector<ScheduleEntry> entries;  // of `ours`, unless agreed
};

// Each Decode throws DataLossError for a header that is not what Encode makes.
Message EncodeJoin(const JoinMessage& join);
JoinMessage DecodeJoin(const Message& message);
Message EncodeData(const DataMessage& data, Tensor tensor);
DataMessage DecodeData(const Message& message);
Message EncodeAbort(const AbortMessage& abort);
AbortMessage DecodeAbort(const Message& message);
Message EncodeLeave(const LeaveMessage& leave);
LeaveMessage DecodeLeave(const Message& message);
Message EncodeFarewell(const FarewellMessage& farewell);
FarewellMessage DecodeFarewell(const Message& message);
Message EncodeSchedule(const ScheduleMessage& schedule);
ScheduleMessage DecodeSchedule(const Message& message);

}  // namespace cohort::collective
