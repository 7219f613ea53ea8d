// The handshakes of new streams, on both sides. A connection has a control stream, for small messages, and a bulk
// stream. Each handshake is the first user of its stream (StreamUser). It ends when it hands the stream over to a
// connection, or when it fails.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/grpc/connection.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/handshake.h"

namespace cohort {

class AcceptorHandshake;

// The functions of a transport that its handshakes call. The transport implements it. Thread-safe.
class HandshakeHost {
 public:
  virtual ~HandshakeHost() = default;
  virtual const std::string& token() const = 0;
  // Returns the identity of this side, or nullopt if Transport::SetIdentity was not called yet. In the second case,
  // SetIdentity will call `asker->Answer`.
  virtual std::optional<TaskIdentity> IdentityFor(const std::shared_ptr<AcceptorHandshake>& asker) = 0;
  // Returns a new connection, which the host owns until it has ended. The dialer's handshake passes the `number` that
  // the acceptor has sent. The acceptor's handshake passes nullopt; then the host chooses a number. Throws
  // UnavailableError after Shutdown.
  virtual std::shared_ptr<GrpcConnection> AddConnection(const TaskIdentity& peer, std::optional<uint64_t> number) = 0;
  // Returns the accepted connection with this number, or nullptr if there is none or it has ended.
  virtual std::shared_ptr<GrpcConnection> FindAccepted(uint64_t number) = 0;
  // Opens the bulk stream of a connection that this side has dialed at `address`. `ticket` is its first frame. It has
  // the connection's number, and a proof that this side has the token.
  virtual void DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::string& address,
                        grpc::ByteBuffer ticket) = 0;
  // Calls OnAccepted of the transport's TransportHandler.
  virtual void Accepted(const std::shared_ptr<GrpcConnection>& connection) = 0;
  // The acceptor's handshakes call it when they end. `refused` is false if the handshake on `stream` has succeeded or
  // the stream has ended: the host then stops limiting the time of the handshake. `refused` is true if this side has
  // refused the peer: the host then cancels the stream after a short time in which the peer can read the reason.
  virtual void Settled(ByteStream& stream, bool refused) = 0;
};

// The frames that a handshake has to send. Thread-safe.
class FrameQueue {
 public:
  void Push(grpc::ByteBuffer frame) COHORT_EXCLUDES(mu_);
  bool Pop(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::deque<grpc::ByteBuffer> frames_ COHORT_GUARDED_BY(mu_);
};

// The acceptor's handshake on a control stream. The stream owns it.
class AcceptorHandshake final : public StreamUser, public std::enable_shared_from_this<AcceptorHandshake> {
 public:
  AcceptorHandshake(HandshakeHost& host, ByteStream& stream) : host_(host), stream_(stream) {}
  void OnFrame(const grpc::ByteBuffer& frame) override;
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string& why) override;
  // Sends this side's hello, if the peer's hello has come and was not answered yet. Otherwise does nothing. May be
  // called on any thread.
  void Answer(const TaskIdentity& mine) COHORT_EXCLUDES(mu_);

 private:
  enum class State { kHello, kIdentity, kProof, kOver };
  void OnHello(const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  void OnProof(const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  // Tells the peer the exception that is being handled.
  void Refuse() COHORT_EXCLUDES(mu_);

  HandshakeHost& host_;
  ByteStream& stream_;  // owns this handshake
  FrameQueue frames_;
  Mutex mu_;
  State state_ COHORT_GUARDED_BY(mu_) = State::kHello;
  Hello theirs_ COHORT_GUARDED_BY(mu_);
  Hello mine_ COHORT_GUARDED_BY(mu_);
};

// Handles the first frame of a bulk stream that a peer has opened. The frame has the number of the connection to which
// the stream belongs, and a proof that the peer has the token. The stream owns this object.
class BulkAcceptor final : public StreamUser {
 public:
  BulkAcceptor(HandshakeHost& host, ByteStream& stream) : host_(host), stream_(stream) {}
  void OnFrame(const grpc::ByteBuffer& frame) override;
  bool NextFrame(grpc::ByteBuffer*) override { return false; }
  void OnEnded(const std::string& why) override;

 private:
  HandshakeHost& host_;
  ByteStream& stream_;
};

// The dialer's handshake on a control stream. The stream owns it; the thread that dials also holds it.
class DialerHandshake final : public StreamUser {
 public:
  // `mine` is the identity of this side. If `expected_task` is not "", the handshake fails if the peer is another task.
  // `address` is the peer's address; the bulk stream is dialed at it, too.
  DialerHandshake(HandshakeHost& host, const TaskIdentity& mine, std::string expected_task, std::string address);
  void OnFrame(const grpc::ByteBuffer& frame) override;
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string& why) override;

  // Sets the stream that owns this handshake. Must be called before the stream starts.
  void set_stream(ByteStream* stream) { stream_ = stream; }
  // Waits until the handshake has ended. Returns the connection, or throws the error for which the handshake has
  // failed: the peer's refusal, an error of this side's checks, or UnavailableError if the stream has ended. Returns
  // nullptr if `deadline` passes first; then no connection will be made.
  std::shared_ptr<GrpcConnection> Wait(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);

 private:
  void OnReply(const FrameView& frame);
  void OnWelcome(const FrameView& frame);

  HandshakeHost& host_;
  ByteStream* stream_ = nullptr;
  Hello mine_;
  const std::string address_;
  const std::string whom_;  // the peer, for error messages
  FrameQueue frames_;
  std::optional<Hello> theirs_;  // set by the reading thread

  Mutex mu_;
  CondVar over_;
  bool abandoned_ COHORT_GUARDED_BY(mu_) = false;
  std::shared_ptr<GrpcConnection> connection_ COHORT_GUARDED_BY(mu_);
  Status failure_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
