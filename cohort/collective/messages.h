// The messages that the processes of a group exchange. docs/formats.md has the byte layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/transport.h"
#include "cohort/collective/call.h"
#include "cohort/collective/schedule.h"

namespace cohort::collective {

// The kinds of messages. GroupDirectory registers this range of numbers as its own (NodeServices::Register).
enum class Kind : uint16_t {
  kJoin = kFirstServiceKind,  // a process joins; to each other process of the group
  kData,                      // a message of an engine, from one member to another; one tensor
  kAbort,                     // the group has failed
  kLeave,                     // a process leaves
  kFarewell,                  // the answer to a process that leaves, if the engine needs it
  kSchedule,                  // a schedule, or the answer that it is equal
};
inline constexpr uint16_t kLastKind = static_cast<uint16_t>(Kind::kSchedule);

// Names one generation of a group.
struct GroupRef {
  int64_t key = 0;
  int64_t generation = 0;
  friend auto operator<=>(const GroupRef&, const GroupRef&) = default;  // NOLINT(modernize-use-nullptr)
};

// Sent by a process that joins. The receiver compares members, schedule and algorithm with its own.
struct JoinMessage {
  GroupRef group;
  std::string task;                        // of the sender, which joins
  std::string host;                        // the sender's HostIdentity(); "": it is on a host of its own
  std::vector<std::string> members;        // full device names by rank
  std::vector<ScheduleEntry> schedule;     // GroupOptions::schedule
  Algorithm algorithm = Algorithm::kAuto;  // GroupOptions::algorithm
  std::vector<std::string> endpoints;      // the sender's CollectiveEngine::Endpoints()
};

// The header of an engine's message. The tensor follows it.
struct DataMessage {
  GroupRef group;
  CallId call;
  int32_t from = 0;  // rank
  int32_t to = 0;    // rank
  int32_t sequence = 0;
  CallSignature signature;            // of the sender's call
  uint64_t schedule_fingerprint = 0;  // of the sender's call; 0: it is not part of a graph
};

// Sent by a process at which the group has failed. It is also the answer to a JoinMessage of a group that a later
// generation has replaced.
struct AbortMessage {
  GroupRef group;
  Status why;
};

// Sent by a process that leaves, with Connection::SendAfterAll. So the receiver handles it after all messages that the
// process sent before on this connection.
struct LeaveMessage {
  GroupRef group;
  Status failed_before;  // the failure of another group, which may be why the process leaves; ok if there is none
};

// Sent to a process that leaves. It says that no call in which the process takes part runs at the sender any more, so
// the process may close its connections.
struct FarewellMessage {
  GroupRef group;
};

// Two members compare their schedules with it if the fingerprints of the schedules differ. Schedules with different
// fingerprints can agree, because an unknown dimension agrees with every size. The member `from` sends its schedule,
// and `to` compares it with its own. If the two agree, `to` answers with `agreed` set. If not, the group fails.
struct ScheduleMessage {
  GroupRef group;
  int32_t from = 0;     // rank
  int32_t to = 0;       // rank
  uint64_t ours = 0;    // fingerprint of the schedule of `from`
  uint64_t theirs = 0;  // fingerprint of the schedule of `to`
  bool agreed = false;
  std::vector<ScheduleEntry> entries;  // the schedule of `from`; empty if agreed
};

// Each Decode throws DataLossError if the header is not one that Encode makes.
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
