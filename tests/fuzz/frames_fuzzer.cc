// What a peer sends on its streams after the handshake: frames of small messages, frames of large messages, and pieces
// of a shared window. An input is a list of frames, each with its length before it. They are read as if their MACs were
// right. A frame as it is in the input has none, and must be refused by FrameMac.
#include <memory>

#include "cohort/cluster/grpc/bulk.h"
#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/frame_mac.h"
#include "cohort/cluster/grpc/window.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/messages.h"

using namespace cohort;

namespace {

const ReceiveWindow& Window() {
  static const auto* sender = SendWindow::Make(4096).release();
  static const auto* window = ReceiveWindow::Open(sender->Offer()).release();
  return *window;
}

void Handle(const FrameView& frame, const grpc::ByteBuffer& buffer, BulkReceiver& bulk) {
  bool complete = false;
  switch (frame.type()) {
    case FrameType::kMessages:
      for (Message& message : DecodeMessages(frame.payload())) {
        if (message.kind == kReservedKind) TakeAfterBulk(&message);
        fuzz::DecodeAny(message);
      }
      return;
    case FrameType::kBulkBegin:
    case FrameType::kBulkChunk: complete = bulk.Add(buffer); break;
    case FrameType::kWindowChunk:
      bulk.AddThrough(Window(), frame.payload());
      complete = bulk.complete();
      break;
    default: return;
  }
  if (complete) fuzz::DecodeAny(bulk.Take());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  fuzz::Accepts([&] {
    BulkReceiver bulk;
    while (!input.empty()) {
      const std::string_view bytes = input.Text();
      const size_t half = bytes.size() / 2;  // gRPC may hold a frame in several pieces
      const grpc::Slice slices[] = {{bytes.data(), half}, {bytes.data() + half, bytes.size() - half}};
      const grpc::ByteBuffer buffer(slices, 2);
      grpc::ByteBuffer frame = buffer;
      fuzz::Require(!fuzz::Accepts([&] { FrameMac(std::string(16, 'k')).Open(&frame); }));
      Handle(FrameView(buffer), buffer, bulk);
    }
  });
  return 0;
}
