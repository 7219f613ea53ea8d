// The order of frames of a handshake on a control stream: the dialer's hello; the acceptor's hello with its proof; the
// dialer's proof; the acceptor's welcome, or at any point a refusal. A bulk stream has only one frame before its first
// chunk: the number of its connection, with a proof.
#include "cohort/cluster/grpc/handshakes.h"

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

std::string BulkTicket(const std::string& token, uint64_t number, const std::string& dialer_task) {
  WireWriter ticket;
  ticket.Fixed64(number);
  ticket.String(ProveToken(token, "bulk", std::to_string(number), dialer_task));
  return ticket.Take();
}

std::string_view Expect(const FrameView& frame, FrameType type, const std::string& whom) {
  if (frame.type() != type) {
    throw DataLossError(StrCat("[handshake] ", whom, " sent a frame of type ", static_cast<int>(frame.type()),
                               "; expected type ", static_cast<int>(type)));
  }
  return frame.payload();
}

}  // namespace

void FrameQueue::Push(grpc::ByteBuffer frame) {
  MutexLock lock(mu_);
  frames_.push_back(std::move(frame));
}

bool FrameQueue::Pop(grpc::ByteBuffer* frame) {
  MutexLock lock(mu_);
  if (frames_.empty()) return false;
  *frame = frames_.front();
  frames_.pop_front();
  return true;
}

void AcceptorHandshake::OnFrame(const grpc::ByteBuffer& frame) {
  State state;
  {
    MutexLock lock(mu_);
    state = state_;
  }
  try {
    switch (state) {
      case State::kHello: return OnHello(frame);
      case State::kIdentity: throw DataLossError("[handshake] a new peer does not wait for its answer");
      case State::kProof: return OnProof(frame);
      case State::kOver: return;
    }
  } catch (...) {
    Refuse();
    throw;  // ends the stream
  }
}

void AcceptorHandshake::OnHello(const grpc::ByteBuffer& buffer) {
  const FrameView frame(buffer);
  Hello theirs = DecodeHello(Expect(frame, FrameType::kHello, "a new peer"));
  {
    MutexLock lock(mu_);
    theirs_ = std::move(theirs);
    state_ = State::kIdentity;
  }
  if (const auto mine = host_.IdentityFor(shared_from_this())) Answer(*mine);
}

void AcceptorHandshake::Answer(const TaskIdentity& mine) {
  std::shared_ptr<ByteStream> stream;
  {
    MutexLock lock(mu_);
    if (state_ != State::kIdentity) return;
    stream = stream_.shared_from_this();  // the stream may end at any time after this block
    mine_.identity = mine;
    mine_.nonce = NewNonce();
    mine_.proof = ProveToken(host_.token(), "accept", theirs_.nonce, mine_.nonce);
    state_ = State::kProof;
    frames_.Push(EncodeFrame(FrameType::kHello, EncodeHello(mine_)));
  }
  stream->Pump();
}

void AcceptorHandshake::OnProof(const grpc::ByteBuffer& buffer) {
  const FrameView frame(buffer);
  std::shared_ptr<GrpcConnection> connection;
  {
    MutexLock lock(mu_);
    const std::string proof(Expect(frame, FrameType::kProof, theirs_.identity.task));
    CheckProof(proof, ProveToken(host_.token(), "dial", theirs_.nonce, mine_.nonce), theirs_.identity);
    CheckCompatible(mine_.identity, theirs_.identity, "");
    CheckCompatible(theirs_.identity, mine_.identity, theirs_.expected_task);
    connection = host_.AddConnection(theirs_.identity, std::nullopt);
    state_ = State::kOver;
  }
  host_.Settled(stream_, false);
  // The handler is told before the welcome leaves: a message that the peer sends after the welcome may come on another
  // network thread. What the handler sends meanwhile waits in the connection, behind the welcome.
  host_.Accepted(connection);
  WireWriter number;
  number.Fixed64(connection->number());
  connection->UseControl(stream_.shared_from_this(), EncodeFrame(FrameType::kWelcome, number.view()));
}

void AcceptorHandshake::Refuse() {
  const Status why = Status::FromCurrentException();
  WireWriter out;
  PutStatus(out, why);
  {
    MutexLock lock(mu_);
    state_ = State::kOver;
  }
  LogDebug("transport", "refused a connection: ", why.message());
  frames_.Push(EncodeFrame(FrameType::kRefused, out.view()));
  host_.Settled(stream_, true);
}

void AcceptorHandshake::OnEnded(const std::string&) {
  {
    MutexLock lock(mu_);
    state_ = State::kOver;
  }
  host_.Settled(stream_, false);
}

void BulkAcceptor::OnFrame(const grpc::ByteBuffer& buffer) {
  const FrameView frame(buffer);
  const std::string_view payload = Expect(frame, FrameType::kProof, "a new bulk stream");
  const uint64_t number = WireReader(payload).Fixed64();
  const auto connection = host_.FindAccepted(number);
  // An unknown number and a wrong proof must end the stream in the same way, so that nobody can find numbers by
  // guessing.
  const std::string expected =
      BulkTicket(host_.token(), number, connection == nullptr ? NewNonce() : connection->peer().task);
  CheckProof(std::string(payload), expected, {"a new bulk stream", "", 0, 0, 0, "", ""});
  host_.Settled(stream_, false);
  if (!connection->UseBulk(stream_.shared_from_this(), std::nullopt)) {
    throw UnavailableError("[transport] the connection of a bulk stream has ended");
  }
  stream_.Pump();
}

void BulkAcceptor::OnEnded(const std::string&) { host_.Settled(stream_, false); }

DialerHandshake::DialerHandshake(HandshakeHost& host, const TaskIdentity& mine, std::string expected_task,
                                 std::string address)
    : host_(host),
      address_(std::move(address)),
      whom_(expected_task.empty() ? address_ : StrCat(expected_task, " (", address_, ")")) {
  mine_.identity = mine;
  mine_.nonce = NewNonce();
  mine_.expected_task = std::move(expected_task);
  frames_.Push(EncodeFrame(FrameType::kHello, EncodeHello(mine_)));
}

void DialerHandshake::OnFrame(const grpc::ByteBuffer& buffer) {
  try {
    const FrameView frame(buffer);
    if (frame.type() == FrameType::kRefused) {
      WireReader in(frame.payload());
      const Status why = GetStatus(in);
      ThrowError(why.code(), StrCat(why.message(), " (refused by ", whom_, ")"));
    }
    theirs_ ? OnWelcome(frame) : OnReply(frame);
  } catch (...) {
    MutexLock lock(mu_);
    if (failure_.ok()) failure_ = Status::FromCurrentException();
    over_.NotifyAll();
    throw;  // ends the stream
  }
}

void DialerHandshake::OnReply(const FrameView& frame) {
  Hello theirs = DecodeHello(Expect(frame, FrameType::kHello, whom_));
  CheckProof(theirs.proof, ProveToken(host_.token(), "accept", mine_.nonce, theirs.nonce), theirs.identity);
  CheckCompatible(mine_.identity, theirs.identity, mine_.expected_task);
  frames_.Push(EncodeFrame(FrameType::kProof, ProveToken(host_.token(), "dial", mine_.nonce, theirs.nonce)));
  theirs_ = std::move(theirs);
  stream_->Pump();
}

void DialerHandshake::OnWelcome(const FrameView& frame) {
  WireReader in(Expect(frame, FrameType::kWelcome, whom_));
  const uint64_t number = in.Fixed64();
  in.ExpectEnd();
  MutexLock lock(mu_);
  if (abandoned_) throw CancelledError("[transport] nobody waits for the connection any more");
  const auto connection = host_.AddConnection(theirs_->identity, number);
  connection->UseControl(stream_->shared_from_this(), std::nullopt);
  host_.DialBulk(connection, address_,
                 EncodeFrame(FrameType::kProof, BulkTicket(host_.token(), number, mine_.identity.task)));
  connection_ = connection;
  over_.NotifyAll();
}

void DialerHandshake::OnEnded(const std::string& why) {
  {
    MutexLock lock(mu_);
    if (failure_.ok()) {
      failure_ = Status(Code::kUnavailable, StrCat("[transport] no connection to ", whom_, ": ",
                                                   why.empty() ? "it closed the stream" : why));
    }
    over_.NotifyAll();
  }
  host_.Settled(*stream_, false);
}

std::shared_ptr<GrpcConnection> DialerHandshake::Wait(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mu_);
  while (connection_ == nullptr && failure_.ok()) {
    if (over_.WaitUntil(mu_, deadline)) continue;
    if (connection_ != nullptr || !failure_.ok()) break;
    abandoned_ = true;
    return nullptr;
  }
  if (connection_ != nullptr) return connection_;
  failure_.ThrowIfError();
  return nullptr;
}

}  // namespace cohort
