// The step protocol: the messages with which tasks register executables and run steps. docs/formats.md has the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/device/device.h"
#include "cohort/runtime/execution/executable.h"
#include "cohort/runtime/step_report.h"
#include "cohort/runtime/step_stats.h"

namespace cohort {

inline constexpr int32_t kProtocolVersion = 12;

// The kinds of messages of the step protocol. Requests go from a master to a task, replies the other way. Two
// exceptions: kValues go between tasks that run a step; kTrainingDone goes from the chief to every other task.
enum class MessageKind : uint16_t {
  kListDevices = 1,  // a request
  kDevices = 2,      // the reply
  kRegister = 3,     // a request with an executable
  kRegistered = 4,   // the reply
  kStartStep = 5,    // tensors: the args
  kStepDone = 6,     // tensors: the results
  kValues = 7,       // tensors: values of edges
  kCancelStep = 8,
  kCloseSession = 9,
  kResetContainer = 10,
  kTrainingDone = 11,     // a request of the chief: training is done, servers may end
  kTrainingDoneAck = 12,  // the reply
  kStatusRequest = 13,    // a request of any peer (cluster/status/status_messages.h)
  kStatus = 14,           // the reply
  kAskAboutStep = 15,     // a request of a master, over a connection of its own: what does the task do for a step?
  kStepReport = 16,       // the reply
};

// Kinds from this number on belong to node services of modules above cluster/, such as collectives
// (cluster/node_service.h).
inline constexpr uint16_t kFirstServiceKind = 64;

// Identifies a step of an executable.
struct StepRef {
  ExecutableKey key;
  int64_t step = 0;
};

// Each Decode function throws DataLossError if the header is not what the Encode function makes. DecodeRegister also
// throws what ParseGraphDef throws, and DecodeDevices what DeviceName::Parse throws.

Message EncodeListDevices(uint64_t request);
Message EncodeDevices(uint64_t request, const std::vector<DeviceAttributes>& devices);
// What the header of an EncodeDevices message says. In the same way, RegisterRequest, RegisteredReply, StepDoneMessage
// and ValuesMessage say what the header of an EncodeRegister, EncodeRegistered, EncodeStepDone and EncodeValues message
// says. Decode functions leave the tensors in Message::tensors.
struct DevicesReply {
  uint64_t request = 0;
  std::vector<DeviceAttributes> devices;
};
uint64_t DecodeListDevices(const Message& message);
DevicesReply DecodeDevices(const Message& message);

// Graphs are sent as GraphDefs.
Message EncodeRegister(uint64_t request, const ExecutableSpec& spec);
struct RegisterRequest {
  uint64_t request = 0;
  ExecutableSpec spec;
};
RegisterRequest DecodeRegister(const Message& message);
Message EncodeRegistered(uint64_t request, const Status& status);
struct RegisteredReply {
  uint64_t request = 0;
  Status status;
};
RegisteredReply DecodeRegistered(const Message& message);

// Of `start` the message has the closure, and whether the step is traced and repeated.
Message EncodeStartStep(const StepRef& ref, const StepStart& start, std::vector<Tensor> args);
struct StartStepMessage {
  StepRef ref;
  ClosureId closure;
  bool traced = false;
  bool repeat = false;
};
StartStepMessage DecodeStartStep(const Message& message);
// `stats` is empty if the step was not traced.
Message EncodeStepDone(const StepRef& ref, const Status& status, std::vector<Tensor> rets, const StepStats& stats = {});
struct StepDoneMessage {
  StepRef ref;
  Status status;
  StepStats stats;
};
StepDoneMessage DecodeStepDone(const Message& message);
Message EncodeValues(const StepRef& ref, std::vector<EdgeValue> values);
struct ValuesMessage {
  StepRef ref;
  std::vector<EdgeId> edges;  // one for each tensor of the message
};
ValuesMessage DecodeValues(const Message& message);
Message EncodeCancelStep(const StepRef& ref, const Status& why);
struct CancelStepMessage {
  StepRef ref;
  Status why;
};
CancelStepMessage DecodeCancelStep(const Message& message);
Message EncodeCloseSession(uint64_t session);
uint64_t DecodeCloseSession(const Message& message);
Message EncodeResetContainer(const std::string& container);
std::string DecodeResetContainer(const Message& message);
struct StepQuestion {
  uint64_t request = 0;
  uint64_t session = 0;
  int64_t step = 0;
  bool with_stacks = false;
};
Message EncodeAskAboutStep(const StepQuestion& question);
StepQuestion DecodeAskAboutStep(const Message& message);
// Of the report, the message has all but `task` and `answered`; of its step, only the stamp and the operations.
Message EncodeStepReport(uint64_t request, const StepReport& report);
struct StepReportMessage {
  uint64_t request = 0;
  StepReport report;
};
StepReportMessage DecodeStepReport(const Message& message);
// Returns a number that changes as bytes of a step come over the connection in a large message, and is 0 if none is
// coming.
uint64_t IncomingStamp(const Connection& connection, uint64_t session, int64_t step);
Message EncodeTrainingDone(uint64_t request);
uint64_t DecodeTrainingDone(const Message& message);
Message EncodeTrainingDoneAck(uint64_t request);
uint64_t DecodeTrainingDoneAck(const Message& message);

}  // namespace cohort
