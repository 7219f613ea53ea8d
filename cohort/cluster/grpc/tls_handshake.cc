#include "cohort/cluster/grpc/tls_handshake.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/core/str_cat.h"

namespace cohort {

void HandshakeFrames::Push(const std::string& message) {
  MutexLock lock(mu_);
  frames_.push_back(EncodeFrame(FrameType::kHandshake, message));
}

bool HandshakeFrames::Pop(grpc::ByteBuffer* frame) {
  MutexLock lock(mu_);
  if (frames_.empty()) return false;
  *frame = frames_.front();
  frames_.pop_front();
  return true;
}

TlsDialing::TlsDialing(ByteStream& stream, DialerHandshake handshake, std::string whom,
                       std::shared_ptr<const DialedCertificate> certificate, TlsOptions own, Attach attach)
    : stream_(stream),
      handshake_(std::move(handshake)),
      whom_(std::move(whom)),
      certificate_(std::move(certificate)),
      own_(std::move(own)),
      attach_(std::move(attach)) {
  frames_.Push(handshake_.hello());
}

void TlsDialing::OnFrame(grpc::ByteBuffer& buffer) {
  heard_ = true;
  try {
    const FrameView frame(buffer);
    if (frame.type() != FrameType::kHandshake) {
      throw DataLossError(StrCat("[handshake] expected a frame of type ", static_cast<int>(FrameType::kHandshake),
                                 " from ", whom_, "; got type ", static_cast<int>(frame.type())));
    }
    const std::string answer = handshake_.OnMessage(frame.payload());
    if (!answer.empty()) {
      frames_.Push(answer);
      return stream_.Pump();
    }
    if (!handshake_.done()) return;
    CheckCertified(certificate_->task(), handshake_.peer());
    MutexLock lock(mu_);
    if (abandoned_) throw CancelledError("[transport] nobody waits for the connection any more");
    attach_(stream_, handshake_);
    attached_ = true;
    over_.NotifyAll();
  } catch (...) {
    Fail(Status::FromCurrentException());
    throw;  // ends the stream
  }
}

void TlsDialing::OnEnded(const std::string& why) {
  const std::string seen = why.empty() ? "it closed the stream" : why;
  Fail(heard_ ? Status(Code::kUnavailable, StrCat("[transport] no connection to ", whom_, ": ", seen))
              : certificate_->Explain(whom_, seen, own_));
}

void TlsDialing::Fail(const Status& why) {
  MutexLock lock(mu_);
  if (failure_.ok()) failure_ = why;
  over_.NotifyAll();
}

bool TlsDialing::Wait(const DialEnd& limit) {
  MutexLock lock(mu_);
  while (!attached_ && failure_.ok()) {
    const Clock::time_point next =
        limit.given_up ? std::min(limit.deadline, Clock::now() + kAskIfGivenUp) : limit.deadline;
    if (over_.WaitUntil(mu_, next)) continue;
    if (attached_ || !failure_.ok()) break;
    if (Clock::now() < limit.deadline && !(limit.given_up && limit.given_up())) continue;
    abandoned_ = true;
    return false;
  }
  if (!attached_) failure_.ThrowIfError();
  return true;
}

}  // namespace cohort
