// Transport: carries messages with tensors between two tasks, and reports lost peers. There are two implementations:
// grpc/ between processes, in_process/ inside one process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/core/tls_options.h"

namespace cohort {

// The description of one side of a connection. The two sides exchange it, and check it, when they connect.
struct TaskIdentity {
  std::string task;  // "/job:ps/replica:0/task:0", or "/job:client/replica:0/task:<random>" for one outside the cluster
  std::string address;          // "host:port" on which the task listens; empty for a client
  uint64_t incarnation = 0;     // a random number, new at each start of the process
  uint64_t op_fingerprint = 0;  // OpRegistry::Fingerprint(), or 0 for a client that only asks for the status of tasks
  int32_t protocol_version = 0;
  // The ClusterSpec as JSON; a client learns the cluster from it. The side that was dialed knows that of its peer only
  // if the two are equal; else it is "" there.
  std::string cluster;
  std::string host;  // HostIdentity() if this task may share memory with its peers, else ""; set by the gRPC transport
};

// The transport uses this kind itself. Callers may use all smaller kinds.
inline constexpr uint16_t kReservedKind = UINT16_MAX;
// SendAfterAll accepts only messages of fewer bytes.
inline constexpr size_t kSmallMessage = 16 * 1024;

// One message. It arrives as a whole. Its tensors lie in host memory; string tensors are allowed.
struct Message {
  uint16_t kind = 0;   // less than kReservedKind
  std::string header;  // bytes whose layout depends on `kind`
  std::vector<Tensor> tensors;
};

// A message of which a part has come.
struct IncomingMessage {
  uint16_t kind = 0;
  std::string header;  // at most the first 64 bytes
  uint64_t bytes = 0;  // how many bytes of the message have come
};

// The options of a transport. A Server sets them.
struct TransportOptions {
  std::string token;  // must be the same on both sides; proved by HMAC, never sent
  // Allow a token of fewer than 16 bytes. The variable COHORT_ALLOW_SHORT_TOKEN=1 does the same.
  bool allow_short_token = false;
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds silence_limit{4500};       // a peer that sends no byte for this time is lost
  std::chrono::milliseconds handshake_timeout{10000};  // the longest time for a handshake, for dialers and acceptors
  bool allow_insecure = false;                         // without `tls`: allow connections to hosts other than this one
  int network_threads = 0;                             // for gRPC only; 0: 1 to 4, depending on the number of cores
  bool share_memory = true;  // use shared memory for large messages to peers of the same host and user
  // Limits for a side that listens; for gRPC only. A connection beyond max_connections is refused. If there are more
  // handshakes than one of the next two limits, the oldest one is dropped. If more handshakes fail in a second than the
  // last limit says, sockets wait before they are accepted. A TLS handshake that fails counts as ten.
  int max_connections = 4096;            // accepted connections; each has two sockets
  int max_handshakes = 256;              // sockets whose peers have not proved yet that they have the token
  int max_handshakes_per_address = 128;  // those of one IP address
  int max_failed_handshakes_per_second = 500;
  TlsOptions tls;  // for gRPC only; the files of mutual TLS; empty: no TLS
};

// A connection to one peer. The transport makes it and keeps a shared_ptr to it until OnClosed; callers may also keep
// shared_ptrs to it. Thread-safe. It ends when one side closes it or shuts down, or when the peer is lost.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const TaskIdentity& peer() const = 0;
  // Queues the message and returns without waiting for the peer. (gRPC: if no other thread is writing to the
  // connection, the calling thread encodes the message and begins the write, but does not wait for the write to end.)
  // The peer handles the small messages in the order of Send, and the large ones in the order of Send. A small message
  // and a large one may change places. A message is large if MaxEncodedSize is at least kSmallMessage; in process, all
  // messages count as small.
  // The tensors are not copied, so the caller must never change them afterwards. If the connection is closed, or is
  // being closed by Shutdown, the message is dropped without an error. The caller learns this only from OnClosed, which
  // is called once for the connection, perhaps before this call. Throws InvalidArgumentError if a tensor is undefined,
  // is a resource handle or lies in a device's memory, or if the kind is reserved.
  virtual void Send(Message message) = 0;
  // Sends several messages, in order, as Send does. The small ones travel together. If it throws, no message is sent.
  virtual void Send(std::vector<Message> messages) = 0;
  // Sends a message that the peer handles after all messages, small and large, that were sent on this connection
  // before. Messages that are sent later may overtake it. Throws InvalidArgumentError as Send does, and also if
  // MaxEncodedSize of the message is kSmallMessage or more.
  virtual void SendAfterAll(Message message) = 0;
  // Closes the connection in both directions, and returns without waiting. Messages that have come to this side and are
  // not handled yet are dropped. So are messages of this side that are not on their way yet. (In process, the peer
  // still handles all messages that were sent before.) Afterwards OnClosed is called with `why` on this side, and at
  // the peer with kUnavailable. If the connection is closed already, Close does nothing.
  virtual void Close(const Status& why) = 0;
  virtual bool closed() const = 0;
  // Returns the time since the last byte from the peer, or 0 in process.
  virtual std::chrono::milliseconds silent_for() const = 0;
  // Returns the large message that is coming in, if the first bytes of one have come and the last ones have not. In
  // process, messages come as a whole.
  virtual std::optional<IncomingMessage> incoming() const { return std::nullopt; }

  // Return how many bytes of messages have left this side, and have come from the peer. They only grow. They count the
  // frames of messages as the frames are made and arrive, also those of a large message that is not complete yet, and
  // what goes through shared memory; but no heartbeats. In process, they count what MaxEncodedSize says.
  int64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  int64_t bytes_received() const { return bytes_received_.load(std::memory_order_relaxed); }

 protected:
  void CountSent(size_t bytes) { bytes_sent_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed); }
  void CountReceived(size_t bytes) {
    bytes_received_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> bytes_sent_{0};
  std::atomic<int64_t> bytes_received_{0};
};

// Receives what comes over the connections of a transport. The transport calls it on network threads, of which there
// are few, perhaps one. So a call must be quick: it must not wait for a message, nor call Dial or Shutdown. Calls for
// different connections may run at the same time. So may OnMessage for a small and for a large message of one
// connection. If OnMessage throws, the transport closes the connection; the status for OnClosed is then kUnavailable
// and contains the error's text.
class TransportHandler {
 public:
  virtual ~TransportHandler() = default;
  // A peer has connected to this side and the handshake has succeeded. Messages follow. Connections that this side has
  // made with Dial are not reported.
  virtual void OnAccepted(const std::shared_ptr<Connection>& connection) = 0;
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  // A connection has closed. The transport calls it once for each connection, made or accepted, as the last call for
  // it. `why` is the `why` of Close on this side, or kCancelled if this side called Shutdown. Otherwise it is
  // kUnavailable with the peer's task and address and what was seen: "closed by the peer", or "no byte for 5.0 s".
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
};

// When an attempt to connect ends without a connection.
struct DialEnd {
  DialEnd(std::chrono::steady_clock::time_point time) : deadline(time) {}  // NOLINT(google-explicit-constructor)
  DialEnd(std::chrono::steady_clock::time_point time, std::function<bool()> gave_up)
      : deadline(time), given_up(std::move(gave_up)) {}
  std::chrono::steady_clock::time_point deadline;
  // If it returns true, the attempt ends as at the deadline. Asked about five times a second. May be null.
  std::function<bool()> given_up;
};
// How long an attempt waits before it asks again whether it is given up.
inline constexpr std::chrono::milliseconds kAskIfGivenUp{200};

// The connections of one process. A PeerTable owns it. Thread-safe. Shutdown ends it; the destructor calls Shutdown.
class Transport {
 public:
  virtual ~Transport() = default;
  // Begins to accept connections on `address` ("host:port"; port 0 means any free port). Returns the port. Must be
  // called at most once. Throws InvalidArgumentError if ParseAddress rejects the address, and UnavailableError if the
  // port is in use. Only gRPC: throws InvalidArgumentError if the host does not resolve or is not this machine, and
  // PermissionDeniedError if the address is not a loopback address, there is no TLS, and allow_insecure is false.
  virtual int Listen(const std::string& address) = 0;
  // Sets what this side says about itself. Until it is called, Dial throws, and the handshakes of peers wait. Only
  // gRPC: throws FailedPreconditionError if the certificate of TLS is not for identity.task.
  virtual void SetIdentity(const TaskIdentity& identity) = 0;
  // Connects to `address` and makes the handshake. `expected_task` is the task that must answer; "" means any task.
  // Waits until `end`, but not longer than the handshake timeout. Messages may reach the handler before Dial
  // returns. Throws
  // - InvalidArgumentError if ParseAddress rejects the address;
  // - UnavailableError if no process listens there (the caller decides whether to try again), if the host does not
  //   resolve (only gRPC), or if this transport is shut down;
  // - PermissionDeniedError if the peer has another token. Only gRPC: also if its certificate is missing, foreign or
  //   expired, or if the address is not a loopback address, there is no TLS, and allow_insecure is false;
  // - UnauthenticatedError if the peer refuses this side's certificate, or has no TLS (only gRPC);
  // - FailedPreconditionError if the peer has another protocol version or other ops, if it is another task, or if
  //   SetIdentity was not called;
  // - DeadlineExceededError if a process listens there and has not answered in time.
  virtual std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                           const DialEnd& end) = 0;
  // Sends the messages that are queued, closes all connections, stops listening, and joins all threads. (gRPC: sending
  // takes at most one second, or at most silence_limit if large messages are queued; the rest is dropped.) Calls
  // OnClosed for every open connection before it returns, and calls no function of the handler afterwards. `remark` is
  // appended to the reason that OnClosed reports, on this side and at the peers. Later calls do nothing.
  void Shutdown(const std::string& remark = "") { End("[transport] this side shuts down" + remark); }

 private:
  virtual void End(const std::string& why) = 0;
};

// Returns a transport over gRPC. `handler` must live until Shutdown has returned. Throws InvalidArgumentError if the
// token is shorter than 16 bytes and that is not allowed, and what LoadTlsIdentity (tls/tls_files.h) throws.
std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options);
// A transport between tasks of one process. It has no sockets. Tensors are passed by reference and never copied. An
// address is a key in a table of this process, in which "localhost" is the same as 127.0.0.1. It has nothing to do with
// the system's port of the same number. A peer cannot be silent here, and nobody can read the messages on their way. So
// only two of the options have an effect: token and handshake_timeout.
std::unique_ptr<Transport> MakeInProcessTransport(TransportHandler& handler, const TransportOptions& options);

// Returns the names of all transports: "grpc", "in_process". The target of a server begins with the name of its
// transport.
std::vector<std::string> TransportProtocols();
// Throws InvalidArgumentError, with all names, if there is no transport of this name.
void CheckTransportProtocol(const std::string& protocol);
// Returns a new transport. Throws as CheckTransportProtocol does.
std::unique_ptr<Transport> MakeTransport(const std::string& protocol, TransportHandler& handler,
                                         const TransportOptions& options);

// The rest of this header is for implementations of Transport.

// Throws InvalidArgumentError if a tensor is undefined, is a resource handle or lies in a device's memory, or if the
// kind is reserved.
void CheckCanTravel(const Message& message);
// Returns an upper bound of the message's encoded size. The bound includes the bytes that a frame adds.
size_t MaxEncodedSize(const Message& message);
// Throws as CheckCanTravel does. Throws InvalidArgumentError also if the message has kSmallMessage bytes or more.
void CheckIsSmall(const Message& message);
// Returns the status for OnClosed of a lost peer. `seen` says what was seen of the loss.
Status LostPeer(const TaskIdentity& peer, const std::string& seen);
// Returns the error that Dial throws at its deadline.
DeadlineExceededError NoAnswer(const std::string& expected_task, const std::string& address,
                               std::chrono::steady_clock::duration waited);

}  // namespace cohort
