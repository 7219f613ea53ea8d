// Transport: carries messages with tensors between two tasks, and reports lost peers. There are two implementations:
// grpc/ between processes, in_process/ inside one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The description of one side of a connection. The two sides exchange it, and check it, when they connect.
struct TaskIdentity {
  std::string task;  // "/job:ps/replica:0/task:0", or "/job:client/replica:0/task:<random>" for one outside the cluster
  std::string address;          // "host:port" on which it listens; empty for a client
  uint64_t incarnation = 0;     // a random number, new at each start of the process
  uint64_t op_fingerprint = 0;  // OpRegistry::Fingerprint()
  int32_t protocol_version = 0;
  std::string cluster;  // the ClusterSpec as JSON; a client learns the cluster from it
  std::string host;     // HostIdentity() if it may share memory, else ""; set by the transport
};

// Messages of this kind and higher kinds belong to the transport itself.
inline constexpr uint16_t kReservedKind = UINT16_MAX;
// SendAfterAll accepts only messages of fewer bytes.
inline constexpr size_t kSmallMessage = 16 * 1024;

// One message. It arrives as a whole. Its tensors lie in host memory; string tensors are allowed.
struct Message {
  uint16_t kind = 0;   // less than kReservedKind
  std::string header;  // bytes whose layout depends on `kind`
  std::vector<Tensor> tensors;
};

// The options of a transport. A Server sets them.
struct TransportOptions {
  std::string token;  // must be the same on both sides; proved by HMAC, never sent
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds silence_limit{4500};       // a peer that sends no byte for this time is lost
  std::chrono::milliseconds handshake_timeout{10000};  // also for a peer that connects and sends nothing
  bool allow_insecure = false;                         // allow connections without TLS to hosts other than this one
  int network_threads = 0;                             // for gRPC only; 0: 1 to 4, depending on the number of cores
  bool share_memory = true;  // use shared memory for large messages to peers of the same host and user
};

// A connection to one peer. The transport makes it, and shared_ptrs own it. Thread-safe. It ends when either side
// closes it or the peer is lost.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const TaskIdentity& peer() const = 0;
  // Queues the message and returns without waiting. If no other thread is sending, this thread starts to send it. The
  // peer handles small messages in the order of Send, and large messages too. But a small message may overtake a large
  // one, or the reverse; each transport decides which messages are large (see SendAfterAll). The tensors are not
  // copied, so the caller must never change them afterwards. If the connection is closed, the message is dropped, and
  // OnClosed of the handler says so. Throws InvalidArgumentError if a tensor is undefined, is a resource handle or lies
  // in a device's memory, or if the kind is reserved.
  virtual void Send(Message message) = 0;
  // Sends several messages. The small ones among them travel together and are handled in order.
  virtual void Send(std::vector<Message> messages) = 0;
  // Sends a message that the peer handles after all messages, small and large, that were sent on this connection
  // before. Messages that are sent later may overtake it. Throws InvalidArgumentError as Send does, and if the message
  // has kSmallMessage bytes or more.
  virtual void SendAfterAll(Message message) = 0;
  // Closes the connection in both directions. The peer sees this at once. Messages that are queued, or have come and
  // are not handled yet, are dropped. On this side OnClosed follows with `why`, unless the connection was closed
  // before.
  virtual void Close(const Status& why) = 0;
  virtual bool closed() const = 0;
  // Returns the time since the last byte from the peer.
  virtual std::chrono::milliseconds silent_for() const = 0;
};

// Receives what comes over the connections of a transport. The transport calls it on network threads, of which there
// are few, perhaps one. So a call must be quick: it must not wait for a message, nor call Dial or Shutdown. If
// OnMessage throws, the transport closes the connection with that error.
class TransportHandler {
 public:
  virtual ~TransportHandler() = default;
  // A peer has connected and the handshake has succeeded. Messages follow.
  virtual void OnAccepted(const std::shared_ptr<Connection>& connection) = 0;
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  // A connection has closed. Called once for each connection, made or accepted, as the last call for it. `why` is the
  // `why` of Close, or kUnavailable with the peer's task and address and what was seen, such as "closed by the peer" or
  // "no byte for 5.0 s".
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
};

// The connections of one process. A PeerTable owns it. Thread-safe. Shutdown ends it.
class Transport {
 public:
  virtual ~Transport() = default;
  // Begins to accept connections on `address` ("host:port"; port 0 means any free port). Returns the port. Must be
  // called at most once. Throws UnavailableError "port 2222 of 127.0.0.1 is in use", InvalidArgumentError if the
  // address is not local or does not resolve, and PermissionDeniedError if the address is not a loopback address,
  // unless allow_insecure is set.
  virtual int Listen(const std::string& address) = 0;
  // Sets what this side says about itself. It must be called before Dial. Handshakes of peers wait for it.
  virtual void SetIdentity(const TaskIdentity& identity) = 0;
  // Connects to `address` and makes the handshake. `expected_task` is the task that must answer; "" means any task.
  // Messages may reach the handler before Dial returns. Throws
  // - UnavailableError if no process listens there (the caller decides whether to try again);
  // - PermissionDeniedError if the peer has another token;
  // - FailedPreconditionError if the peer has another protocol version, other ops, or is another task;
  // - DeadlineExceededError if a process listens there and has not answered by `deadline` or within the handshake
  //   timeout.
  virtual std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                           std::chrono::steady_clock::time_point deadline) = 0;
  // Closes all connections, stops listening, and joins all threads. Sends queued small messages before, if the peers
  // take them within a second. Peers get `remark` with the reason for which their connections close. No call of the
  // handler follows. Later calls do nothing.
  void Shutdown(const std::string& remark = "") { End("[transport] this side shuts down" + remark); }

 private:
  virtual void End(const std::string& why) = 0;
};

// `handler` must live until Shutdown has returned.
std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options);
// A transport between tasks of one process. It has no sockets. Tensors are passed by reference and never copied. An
// address is a key in a table of this process, in which "localhost" is the same as 127.0.0.1. It has nothing to do with
// the system's port of the same number. A peer cannot be silent here, and nobody can read the messages on their way. So
// of the options only token and handshake_timeout have an effect.
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
// Returns an upper bound of the bytes that the message takes in a frame of small messages.
size_t MaxEncodedSize(const Message& message);
// Throws as CheckCanTravel does. Throws InvalidArgumentError also if the message has kSmallMessage bytes or more.
void CheckIsSmall(const Message& message);
// Returns the status for OnClosed of a lost peer. `seen` says what was seen of the loss.
Status LostPeer(const TaskIdentity& peer, const std::string& seen);
// Returns the error that Dial throws at its deadline.
DeadlineExceededError NoAnswer(const std::string& expected_task, const std::string& address,
                               std::chrono::steady_clock::duration waited);

}  // namespace cohort
