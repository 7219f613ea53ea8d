// The users of streams whose handshake is under way, on both sides. Each ends by handing its stream to a connection.
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

// What a handshake needs of its transport.
class HandshakeHost {
 public:
  virtual ~HandshakeHost() = default;
  virtual const std::string& token() const = 0;
  // Nothing where this side does not know yet who it is; `asker->Answer` is then called once it does.
  virtual std::optional<TaskIdentity> IdentityFor(const std::shared_ptr<AcceptorHandshake>& asker) = 0;
  // A new connection with the number that a peer chose, or with one of its own. Throws UnavailableError after Shutdown.
  virtual std::shared_ptr<GrpcConnection> AddConnection(const TaskIdentity& peer, std::optional<uint64_t> number) = 0;
  // Accepted, not yet closed; null where there is none.
  virtual std::shared_ptr<GrpcConnection> FindAccepted(uint64_t number) = 0;
  // Opens the bulk stream of a connection that this side has dialed at `address`.
  virtual void DialBulk(const std::shared_ptr<GrpcConnection>& connection, const std::string& address,
                        grpc::ByteBuffer ticket) = 0;
  virtual void Accepted(const std::shared_ptr<GrpcConnection>& connection) = 0;
  // The handshake on `stream` is over; or, `refused`, is to be within a second.
  virtual void Settled(ByteStream& stream, bool refused) = 0;
};

// Frames that wait to be written. Thread-safe.
class FrameQueue {
 public:
  void Push(grpc::ByteBuffer frame) COHORT_EXCLUDES(mu_);
  bool Pop(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::deque<grpc::ByteBuffer> frames_ COHORT_GUARDED_BY(mu_);
};

// Of a control stream that a peer has opened.
class AcceptorHandshake final : public StreamUser, public std::enable_shared_from_this<AcceptorHandshake> {
 public:
  AcceptorHandshake(HandshakeHost& host, ByteStream& stream) : host_(host), stream_(stream) {}
  void OnFrame(const grpc::ByteBuffer& frame) override;
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string& why) override;
  // Who this side is; on any thread, once.
  void Answer(const TaskIdentity& mine) COHORT_EXCLUDES(mu_);

 private:
  enum class State { kHello, kIdentity, kProof, kOver };
  void OnHello(const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  void OnProof(const grpc::ByteBuffer& frame) COHORT_EXCLUDES(mu_);
  // With the exception that is in flight.
  void Refuse() COHORT_EXCLUDES(mu_);

  HandshakeHost& host_;
  ByteStream& stream_;  // holds this
  FrameQueue frames_;
  Mutex mu_;
  State state_ COHORT_GUARDED_BY(mu_) = State::kHello;
  Hello theirs_ COHORT_GUARDED_BY(mu_);
  Hello mine_ COHORT_GUARDED_BY(mu_);
};

// Of a bulk stream that a peer has opened: its first frame says to which connection it belongs.
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

// Of a control stream that this side opens.
class DialerHandshake final : public StreamUser {
 public:
  DialerHandshake(HandshakeHost& host, const TaskIdentity& mine, std::string expected_task, std::string address);
  void OnFrame(const grpc::ByteBuffer& frame) override;
  bool NextFrame(grpc::ByteBuffer* frame) override { return frames_.Pop(frame); }
  void OnEnded(const std::string& why) override;

  // The stream that holds this; before it starts.
  void set_stream(ByteStream* stream) { stream_ = stream; }
  // Waits for the end of the handshake and throws what made it fail; null when `deadline` passed, and no connection
  // will come of it any more.
  std::shared_ptr<GrpcConnection> Wait(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);

 private:
  void OnReply(const FrameView& frame);
  void OnWelcome(const FrameView& frame);

  HandshakeHost& host_;
  ByteStream* stream_ = nullptr;
  Hello mine_;
  const std::string address_;
  const std::string whom_;  // for errors
  FrameQueue frames_;
  std::optional<Hello> theirs_;  // of the reading thread

  Mutex mu_;
  CondVar over_;
  bool abandoned_ COHORT_GUARDED_BY(mu_) = false;
  std::shared_ptr<GrpcConnection> connection_ COHORT_GUARDED_BY(mu_);
  Status failure_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
