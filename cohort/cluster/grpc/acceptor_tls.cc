// What GrpcAcceptor does with TLS. gRPC has made the TLS handshake, and PeerCheck has taken the certificate. The stream
// begins with the messages of our handshake, in frames. When the peer has proved itself and is welcome, it sends its
// kAttach frame, as without TLS.
#include "cohort/cluster/grpc/acceptor.h"
#include "cohort/cluster/grpc/tls_handshake.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Throws unless the frame attaches the stream to the connection of its handshake.
void CheckAttach(const FrameView& frame, uint64_t number) {
  if (frame.type() == FrameType::kAttach && WireReader(frame.payload()).Fixed64() == number) return;
  throw DataLossError(StrCat("[transport] expected the frame that attaches a stream to connection ", number,
                             "; got a frame of type ", static_cast<int>(frame.type())));
}

}  // namespace

// The first user of an accepted stream with TLS. The stream owns it. A stream whose peer has to wait for its welcome is
// continued by TryAgain.
class GrpcAcceptor::TlsOpener final : public StreamUser, public std::enable_shared_from_this<TlsOpener> {
 public:
  // `certified` is whom the certificate is for, `address` the peer's network address.
  TlsOpener(GrpcAcceptor& acceptor, ByteStream& stream, StreamRole role, std::string certified, std::string address)
      : acceptor_(acceptor),
        stream_(stream),
        role_(role),
        certified_(std::move(certified)),
        address_(std::move(address)),
        handshake_(acceptor.options_.token, [&acceptor](uint64_t number) { return acceptor.SecretOf(number); }) {}

  void OnFrame(grpc::ByteBuffer& buffer) override COHORT_EXCLUDES(mu_);
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string&) override { acceptor_.Settled(stream_); }
  // Asks again whether the peer is welcome.
  void TryAgain() COHORT_EXCLUDES(mu_);

 private:
  enum class State { kHandshake, kWaits, kWelcome, kOver };
  void OnMessage(const FrameView& frame) COHORT_REQUIRES(mu_);
  void TryWelcome() COHORT_REQUIRES(mu_);
  // Tells the peer the exception that is being handled.
  void Refuse() COHORT_REQUIRES(mu_);

  GrpcAcceptor& acceptor_;
  ByteStream& stream_;  // owns this
  const StreamRole role_;
  const std::string certified_;
  const std::string address_;
  HandshakeFrames frames_;
  Mutex mu_;
  State state_ COHORT_GUARDED_BY(mu_) = State::kHandshake;
  AcceptorHandshake handshake_ COHORT_GUARDED_BY(mu_);
};

void GrpcAcceptor::TlsOpener::OnFrame(grpc::ByteBuffer& buffer) {
  bool attach = false;
  {
    MutexLock lock(mu_);
    if (state_ == State::kOver) return;
    try {
      const FrameView frame(buffer);
      attach = state_ == State::kWelcome;
      attach ? CheckAttach(frame, handshake_.connection().number) : OnMessage(frame);
    } catch (...) {
      Refuse();
      throw;  // ends the stream, behind the refusal
    }
    if (attach) state_ = State::kOver;
  }
  if (!attach) return stream_.Pump();
  role_ == StreamRole::kControl ? acceptor_.OpenControl(stream_, buffer) : acceptor_.OpenBulk(stream_, buffer);
}

void GrpcAcceptor::TlsOpener::OnMessage(const FrameView& frame) {
  if (frame.type() != FrameType::kHandshake || state_ != State::kHandshake) {
    throw DataLossError(StrCat("[handshake] expected a message of the handshake; got a frame of type ",
                               static_cast<int>(frame.type())));
  }
  const std::string answer = handshake_.OnMessage(frame.payload());
  if (!answer.empty()) frames_.Push(answer);
  if (!handshake_.proved()) return;
  if (handshake_.role() != role_) throw DataLossError("[handshake] the stream is not for the role of its handshake");
  if (role_ == StreamRole::kControl) {
    CheckCertified(certified_, handshake_.peer());
  } else {
    acceptor_.CheckBulkPeer(handshake_.connection().number, certified_);
  }
  TryWelcome();
}

void GrpcAcceptor::TlsOpener::TryWelcome() {
  state_ = State::kWaits;
  auto messages = acceptor_.Welcome(handshake_);
  if (!messages) {
    acceptor_.WaitForWake(weak_from_this());
    messages = acceptor_.Welcome(handshake_);  // a call of Wake before the line above would be missed
    if (!messages) return;
  }
  if (!acceptor_.Register(handshake_)) throw UnavailableError("[transport] this task, or the connection, ends");
  acceptor_.tls_news_->Prove(address_);
  for (const std::string& message : *messages) frames_.Push(message);
  state_ = State::kWelcome;
}

void GrpcAcceptor::TlsOpener::TryAgain() {
  const auto stream = stream_.weak_from_this().lock();
  if (stream == nullptr) return;
  {
    MutexLock lock(mu_);
    if (state_ != State::kWaits) return;
    try {
      TryWelcome();
    } catch (...) {
      Refuse();
    }
  }
  stream->Pump();
}

void GrpcAcceptor::TlsOpener::Refuse() {
  const Status why = Status::FromCurrentException();
  state_ = State::kOver;
  acceptor_.sockets_.LogRefusal(address_, why.message());
  frames_.Push(EncodeRefusal(why));
}

std::shared_ptr<StreamUser> GrpcAcceptor::MakeTlsOpener(ByteStream& stream, StreamRole role,
                                                        const grpc::ServerContext& context) {
  return std::make_shared<TlsOpener>(*this, stream, role, CertifiedTask(context), NetworkAddress(context.peer()));
}

void GrpcAcceptor::CheckBulkPeer(uint64_t number, const std::string& certified) {
  MutexLock lock(mu_);
  const auto peer = peers_.find(number);
  if (peer != peers_.end()) CheckCertified(certified, peer->second.identity);
}

void GrpcAcceptor::WaitForWake(std::weak_ptr<TlsOpener> opener) {
  MutexLock lock(mu_);
  waiting_.push_back(std::move(opener));
}

void GrpcAcceptor::Wake() {
  sockets_.Wake();
  std::vector<std::weak_ptr<TlsOpener>> waiting;
  {
    MutexLock lock(mu_);
    waiting.swap(waiting_);
  }
  for (const auto& opener : waiting) {
    if (const auto alive = opener.lock()) alive->TryAgain();
  }
}

}  // namespace cohort
