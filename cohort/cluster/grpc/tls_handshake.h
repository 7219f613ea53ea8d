// The handshakes of streams with TLS. gRPC dials and makes the TLS handshake by itself, so the messages of our
// handshake (handshake.h) travel inside of TLS: each is a frame of type kHandshake, at the beginning of the stream.
// Then the dialer sends its kAttach frame, as without TLS.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/grpc/tls.h"
#include "cohort/cluster/handshake.h"
#include "cohort/core/mutex.h"

namespace cohort {

// The frames that a handshake has to send. Thread-safe.
class HandshakeFrames {
 public:
  void Push(const std::string& message) COHORT_EXCLUDES(mu_);
  bool Pop(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::deque<grpc::ByteBuffer> frames_ COHORT_GUARDED_BY(mu_);
};

// The dialer's side of one stream. The stream owns it; the thread that dials also holds it.
class TlsDialing final : public StreamUser {
 public:
  using Clock = std::chrono::steady_clock;
  // Makes the stream a part of a connection. It is called on a network thread when the handshake is done.
  using Attach = std::function<void(ByteStream& stream, const DialerHandshake& handshake)>;

  // `whom` names the peer in errors. `certificate` is what the stream sees of the peer's certificate; `own` are the
  // files of this side, for errors.
  TlsDialing(ByteStream& stream, DialerHandshake handshake, std::string whom,
             std::shared_ptr<const DialedCertificate> certificate, TlsOptions own, Attach attach);
  void OnFrame(grpc::ByteBuffer& frame) override COHORT_EXCLUDES(mu_);
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string& why) override COHORT_EXCLUDES(mu_);

  // Waits until the stream belongs to a connection. Returns false if `limit` passes first; `attach` is not called
  // afterwards. Throws the errors of DialerHandshake and of `attach`; UnavailableError if no process listens there;
  // and the other errors of DialedCertificate::Explain.
  bool Wait(const DialEnd& limit) COHORT_EXCLUDES(mu_);

 private:
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);

  ByteStream& stream_;         // owns this
  DialerHandshake handshake_;  // only for the reading thread
  const std::string whom_;
  const std::shared_ptr<const DialedCertificate> certificate_;
  const TlsOptions own_;
  const Attach attach_;
  HandshakeFrames frames_;
  bool heard_ = false;  // a frame has come; only for the reading thread

  Mutex mu_;
  CondVar over_;
  bool attached_ COHORT_GUARDED_BY(mu_) = false;
  bool abandoned_ COHORT_GUARDED_BY(mu_) = false;
  Status failure_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
