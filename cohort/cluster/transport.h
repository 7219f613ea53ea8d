// Transport: tagged messages with tensors between two tasks, and the news that a peer is gone. Implementations in
// subfolders: grpc/ between processes, in_process/ inside one.
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

// Who a side of a connection says it is; exchanged and checked when the connection is made.
struct TaskIdentity {
  std::string task;  // "/job:ps/replica:0/task:0", or "/job:client/replica:0/task:<random>" for one outside the cluster
  std::string address;          // "host:port" where it listens; empty for a client
  uint64_t incarnation = 0;     // random at each start of the process
  uint64_t op_fingerprint = 0;  // OpRegistry::Fingerprint()
  int32_t protocol_version = 0;
  std::string cluster;  // the ClusterSpec as JSON, so that a client can learn it
  std::string host;     // HostIdentity() where it shares memory, else ""; set by the transport
};

// Kinds of messages from here on are a transport's own.
inline constexpr uint16_t kReservedKind = UINT16_MAX;
// SendAfterAll takes messages of fewer bytes.
inline constexpr size_t kSmallMessage = 16 * 1024;

// One unit that arrives whole. Tensors are in host memory; string tensors are allowed.
struct Message {
  uint16_t kind = 0;   // below kReservedKind
  std::string header;  // the receiver of `kind` knows its layout
  std::vector<Tensor> tensors;
};

struct TransportOptions {
  std::string token;  // both sides must have the same; proved by HMAC, never sent
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds silence_limit{4500};       // no byte from the peer for so long: it is lost
  std::chrono::milliseconds handshake_timeout{10000};  // also of a peer that connects and says nothing
  bool allow_insecure = false;                         // without TLS off loopback
  int network_threads = 0;                             // over gRPC; 0: by the cores, 1 to 4
  bool share_memory = true;                            // with peers of this host and user, for large messages
};

// One peer, seen from this side. Thread-safe.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual const TaskIdentity& peer() const = 0;
  // Queues the message and returns. If no other thread is sending, this thread sends it; it never waits. Small messages
  // are handled in the order of Send, and so are large ones, but the two kinds may overtake each other: which messages
  // are large is the transport's affair (SendAfterAll). A message's tensors are not copied: they must never change
  // afterwards. A message is dropped if the connection is closed; the handler's OnClosed tells. Throws
  // InvalidArgumentError for an undefined tensor, a resource handle, a tensor in a device's memory or a reserved kind.
  virtual void Send(Message message) = 0;
  // Sends several messages. The small ones among them travel together and are handled in order.
  virtual void Send(std::vector<Message> messages) = 0;
  // Sends a message that the peer handles after all messages that were sent on this connection before it, small and
  // large. Messages that are sent later may overtake it. Throws InvalidArgumentError as Send does, and for a message of
  // kSmallMessage bytes or more.
  virtual void SendAfterAll(Message message) = 0;
  // Closes both ways; the peer sees it at once. OnClosed follows with `why` (on this side) unless it is closed already.
  // What is queued, or has come in and is not handled yet, is dropped.
  virtual void Close(const Status& why) = 0;
  virtual bool closed() const = 0;
  // Since the last byte from the peer.
  virtual std::chrono::milliseconds silent_for() const = 0;
};

// What a task does with what comes in. Called on network threads, of which a transport has few or one: quick work only,
// nothing that waits for a message or for Dial, no Shutdown. What OnMessage throws closes the connection with that
// error.
class TransportHandler {
 public:
  virtual ~TransportHandler() = default;
  // A connection that a peer has made and whose handshake is done. Messages follow.
  virtual void OnAccepted(const std::shared_ptr<Connection>& connection) = 0;
  virtual void OnMessage(const std::shared_ptr<Connection>& connection, Message message) = 0;
  // Once for each connection, made or accepted, the last call for it: kUnavailable with the peer's task and address
  // and what was seen ("closed by the peer", "no byte for 5.0 s"); or the `why` of Close.
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Begins to accept on `address` ("host:port", port 0 = any free one). Returns the bound port. Throws
  // UnavailableError "port 2222 of 127.0.0.1 is in use", InvalidArgumentError for an address that is not local or does
  // not resolve, PermissionDeniedError off loopback without TLS unless allow_insecure. At most once.
  virtual int Listen(const std::string& address) = 0;
  // Sets what this side says of itself. Before Dial, and before peers' handshakes are answered.
  virtual void SetIdentity(const TaskIdentity& identity) = 0;
  // Connects and shakes hands. `expected_task`: whom we want there ("" = whoever). Messages may reach the handler
  // before this returns. Throws UnavailableError where nobody listens (yet): the caller decides whether to try again;
  // PermissionDeniedError for another token, FailedPreconditionError for another protocol version, op registry or task,
  // DeadlineExceededError where somebody listens but has not answered by `deadline` or within the handshake timeout.
  virtual std::shared_ptr<Connection> Dial(const std::string& address, const std::string& expected_task,
                                           std::chrono::steady_clock::time_point deadline) = 0;
  // Closes all connections and the listener, joins every thread. Small messages that are queued are sent before, where
  // the peers take them within a second. No handler call comes afterwards. Idempotent. Peers are told `remark` with
  // the reason why their connections close.
  void Shutdown(const std::string& remark = "") { End("[transport] this side shuts down" + remark); }

 private:
  virtual void End(const std::string& why) = 0;
};

// `handler` outlives the transport's Shutdown.
std::unique_ptr<Transport> MakeGrpcTransport(TransportHandler& handler, const TransportOptions& options);
// For peers in this process: no sockets, tensors are passed by reference and never copied. Addresses are places in a
// table of the process ("localhost" is 127.0.0.1 there too); a place is told apart from the system's port of that
// number. Nobody can be silent and nothing can be read on the way, so that only token and handshake_timeout matter.
std::unique_ptr<Transport> MakeInProcessTransport(TransportHandler& handler, const TransportOptions& options);

// The transports by name: "grpc", "in_process". The names are also the schemes of servers' targets.
std::vector<std::string> TransportProtocols();
// Throws InvalidArgumentError for another name, with those that there are.
void CheckTransportProtocol(const std::string& protocol);
// Throws the same.
std::unique_ptr<Transport> MakeTransport(const std::string& protocol, TransportHandler& handler,
                                         const TransportOptions& options);

// For those who implement one.

// Throws InvalidArgumentError for an undefined tensor, a resource handle, a tensor in a device's memory or a reserved
// kind.
void CheckCanTravel(const Message& message);
// At least as many bytes as the message takes when it travels among small ones.
size_t MaxEncodedSize(const Message& message);
// Throws what CheckCanTravel throws, and InvalidArgumentError for a message of kSmallMessage bytes or more.
void CheckIsSmall(const Message& message);
// What OnClosed says of a peer that is gone; `seen`: what showed it.
Status LostPeer(const TaskIdentity& peer, const std::string& seen);
// What Dial throws at its deadline.
DeadlineExceededError NoAnswer(const std::string& expected_task, const std::string& address,
                               std::chrono::steady_clock::duration waited);

}  // namespace cohort
