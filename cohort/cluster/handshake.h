// Handshake: how the two sides of a new stream check each other before anything else travels. The side that connects is
// the dialer, the other one is the acceptor. Both need the job's token, which is never sent. The order of messages:
//
//   1. hello     dialer      its role (control or bulk), its identity, the task and the address that it wants, a nonce
//   2. nonce     acceptor    random bytes, and nothing about the acceptor
//   3. proof     dialer      a MAC over messages 1 and 2
//   4. welcome   acceptor    its identity, the connection's number, and a MAC over messages 1 to 4
//   5. cluster   acceptor    the cluster spec, in parts, if the dialer's hello has another hash of it
//   or refusal   acceptor    instead of 2, 4: a status. The stream then ends.
//
// The MACs of a control stream have the token as their key. The session key of the connection comes from the token and
// from messages 1 to 4. A bulk stream belongs to a connection; its MACs have the session key as their key. So a proof
// is good for one stream, one pair of processes, one task and one address: a process without the token can pass
// messages on, but cannot be accepted by anybody with them.
//
// The two classes know no sockets: they turn the messages of the peer into answers. grpc/socket_*.h carry the messages
// over sockets. docs/formats.md has the layout.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/transport.h"

namespace cohort {

// The most bytes of one message. Neither side accepts or makes a larger one.
inline constexpr size_t kLargestHandshakeMessage = 4096;
// A shorter token is refused unless the user insists, because it can be guessed.
inline constexpr size_t kShortestToken = 16;

// What a stream is for.
enum class StreamRole : uint8_t { kControl = 1, kBulk = 2 };

// The keys of the MACs of one stream, 16 bytes each. What one side sends, the other one receives.
struct StreamKeys {
  std::string send;
  std::string receive;
};

// What both sides of a connection know, and nobody else.
struct ConnectionSecret {
  uint64_t number = 0;  // chosen by the acceptor; it has no other connection with this number
  std::string key;      // the session key, 32 bytes
};

// The dialer's side of one handshake. Not thread-safe.
class DialerHandshake {
 public:
  // For the control stream of a new connection. `mine` is the identity of this side. If `expected_task` is not "", the
  // handshake fails if the acceptor is another task. `address` is the address that is dialed. Throws
  // InvalidArgumentError if the hello is larger than kLargestHandshakeMessage.
  DialerHandshake(std::string token, const TaskIdentity& mine, const std::string& expected_task,
                  const std::string& address);
  // For the bulk stream of a connection that this side has dialed. `peer` is the acceptor.
  DialerHandshake(const ConnectionSecret& connection, const TaskIdentity& peer);

  // Returns the hello, which the caller sends first.
  const std::string& hello() const { return hello_; }
  // Takes the acceptor's next message. Returns the message to send now, or "" if there is none. Throws the error of a
  // refusal, DataLossError if the message is not the next one of a handshake, PermissionDeniedError if the acceptor
  // does not have the token, and FailedPreconditionError if the two sides do not fit (CheckCompatible). After an error
  // the caller closes the stream.
  std::string OnMessage(std::string_view message);
  // Returns true after the last message. The following functions require it.
  bool done() const { return state_ == State::kDone; }
  const TaskIdentity& peer() const { return peer_; }
  const ConnectionSecret& connection() const { return connection_; }
  const StreamKeys& keys() const { return keys_; }

 private:
  enum class State { kNonce, kWelcome, kCluster, kDone };
  void OnWelcome(std::string_view message);
  void OnCluster(std::string_view message);

  const StreamRole role_;
  const std::string key_;  // of the MACs: the token, or the session key
  const TaskIdentity mine_;
  const std::string expected_task_;
  const std::string whom_;  // the acceptor, for errors
  std::string hello_;
  std::string transcript_;
  State state_ = State::kNonce;
  TaskIdentity peer_;
  ConnectionSecret connection_;
  StreamKeys keys_;
  size_t cluster_size_ = 0;
  std::string cluster_hash_;
};

// The acceptor's side of one handshake. Not thread-safe.
class AcceptorHandshake {
 public:
  // Returns the secret of the accepted connection with this number, or nullopt if there is none.
  using FindConnection = std::function<std::optional<ConnectionSecret>(uint64_t number)>;

  AcceptorHandshake(std::string token, FindConnection find);

  // Takes the dialer's next message. Returns the message to send now, or "" if there is none. Throws DataLossError if
  // the message is not the next one of a handshake, and PermissionDeniedError if the dialer does not have the token. An
  // unknown number of a connection and a wrong proof give the same error. After an error the caller sends
  // EncodeRefusal and closes the stream.
  std::string OnMessage(std::string_view message);
  // Returns true if the dialer has proved itself. The caller then calls Welcome or WelcomeBulk, at any later time.
  // Until then the dialer has learned nothing about this side. The following functions require it.
  bool proved() const { return state_ == State::kProved || state_ == State::kDone; }
  StreamRole role() const { return role_; }
  // Returns the dialer's identity. Its `cluster` is that of the acceptor if the two are equal, else "". Only for
  // StreamRole::kControl.
  const TaskIdentity& peer() const { return peer_; }
  // For a control stream: returns the messages to send. `number` is that of the new connection. `listening_port` is the
  // port on which this side was reached. Throws FailedPreconditionError if the two sides do not fit (CheckCompatible),
  // or if the dialer has dialed the address of another process. Afterwards connection() and keys() are there.
  std::vector<std::string> Welcome(const TaskIdentity& mine, int listening_port, uint64_t number);
  // For a bulk stream: returns the message to send. Afterwards keys() is there.
  std::string WelcomeBulk();
  const ConnectionSecret& connection() const { return connection_; }
  const StreamKeys& keys() const { return keys_; }

 private:
  enum class State { kHello, kProof, kProved, kDone };
  std::string OnHello(std::string_view message);
  void OnProof(std::string_view message);

  const std::string token_;
  const FindConnection find_;
  std::string key_;  // of the MACs: the token, or the session key
  StreamRole role_ = StreamRole::kControl;
  State state_ = State::kHello;
  std::string transcript_;
  TaskIdentity peer_;
  std::string expected_task_;
  std::string dialed_address_;
  std::string cluster_hash_;
  ConnectionSecret connection_;
  StreamKeys keys_;
};

// Returns the message with which an acceptor refuses a dialer. A message of `why` that is too long is cut off.
std::string EncodeRefusal(const Status& why);

// Throws InvalidArgumentError if the token is shorter than kShortestToken, and neither `allow_short` is true nor the
// environment variable COHORT_ALLOW_SHORT_TOKEN is "1".
void CheckTokenLength(const std::string& token, bool allow_short);

// Throws PermissionDeniedError if the two tokens are not equal; for transports inside one process. `peer` is named.
void CheckSameToken(const std::string& mine, const std::string& theirs, const TaskIdentity& peer);

// Throws FailedPreconditionError, with the values of both sides, if protocol versions or ops differ, or if `theirs` is
// not `expected_task` ("" means any task). Ops may differ if one side only asks for the status of tasks.
void CheckCompatible(const TaskIdentity& mine, const TaskIdentity& theirs, const std::string& expected_task);

}  // namespace cohort
