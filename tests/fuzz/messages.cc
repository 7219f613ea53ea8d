#include "tests/fuzz/messages.h"

#include "cohort/cluster/steps/protocol.h"
#include "cohort/collective/messages.h"
#include "cohort/runtime/execution/executable_checks.h"
#include "tests/fuzz/all_ops.h"
#include "tests/fuzz/fuzz_input.h"

namespace cohort::fuzz {
namespace {

void DecodeStepMessage(const Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kListDevices: DecodeListDevices(message); break;
    case MessageKind::kDevices: DecodeDevices(message); break;
    case MessageKind::kRegister: {
      RegisterAllOps();
      CheckExecutableSpec(DecodeRegister(message).spec);
      break;
    }
    case MessageKind::kRegistered: static_cast<void>(DecodeRegistered(message)); break;
    case MessageKind::kStartStep: DecodeStartStep(message); break;
    case MessageKind::kStepDone: DecodeStepDone(message); break;
    case MessageKind::kValues: DecodeValues(message); break;
    case MessageKind::kCancelStep: DecodeCancelStep(message); break;
    case MessageKind::kCloseSession: DecodeCloseSession(message); break;
    case MessageKind::kResetContainer: DecodeResetContainer(message); break;
    case MessageKind::kTrainingDone: DecodeTrainingDone(message); break;
    case MessageKind::kTrainingDoneAck: DecodeTrainingDoneAck(message); break;
    default: break;
  }
}

void DecodeCollectiveMessage(const Message& message) {
  switch (static_cast<collective::Kind>(message.kind)) {
    case collective::Kind::kJoin: collective::DecodeJoin(message); break;
    case collective::Kind::kData: collective::DecodeData(message); break;
    case collective::Kind::kAbort: collective::DecodeAbort(message); break;
    case collective::Kind::kLeave: collective::DecodeLeave(message); break;
    case collective::Kind::kFarewell: collective::DecodeFarewell(message); break;
    case collective::Kind::kSchedule: collective::DecodeSchedule(message); break;
    default: break;
  }
}

}  // namespace

void DecodeAny(const Message& message) {
  Accepts([&] {
    if (message.kind < kFirstServiceKind) {
      DecodeStepMessage(message);
    } else {
      DecodeCollectiveMessage(message);
    }
  });
}

}  // namespace cohort::fuzz
