// Sockets of the transport: how one listens, connects, and carries the messages of a handshake. A message on a socket
// is its length (4 bytes, the lowest first) and its bytes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/handshake.h"
#include "cohort/cluster/local_address.h"

namespace cohort {

// A file descriptor of the system, or none (-1). The destructor closes it. It can be moved and not copied.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  // Returns the descriptor, which the caller closes.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// An eventfd: other threads end the waiting of a thread with it. Thread-safe.
class WakeUp {
 public:
  WakeUp();
  // Makes the descriptor readable.
  void Notify();
  // Makes it unreadable again.
  void Clear();
  int fd() const { return fd_.get(); }

 private:
  const Descriptor fd_;
};

// The sockets that listen on all addresses of one host, on one port.
struct Listener {
  std::vector<Descriptor> sockets;
  int port = 0;
};

// Listens on `address` ("host:port"; port 0 means any free port). If another process of the same user has bound the
// port with SO_REUSEPORT and does not listen, as a PortReservation does, the port is shared with it. Throws the errors
// of CheckListenAddress, and UnavailableError if the port is in use.
Listener ListenOn(const std::string& address, bool allow_insecure);

// Prepares an accepted or connected socket for small messages.
void PrepareSocket(int fd);
// Returns the address of a socket's peer, or nullopt if the peer is gone.
std::optional<SocketAddress> PeerOf(int fd);
// Returns the message with its length before it.
std::string WithLength(std::string_view message);
// Returns the length that the first 4 bytes of `bytes` say. Throws DataLossError, which says what the peer may be, if
// it is 0 or more than kLargestHandshakeMessage.
size_t MessageLength(std::string_view bytes);

// Connects sockets to one peer, and makes the dialer's handshake on them. Used on one thread.
class SocketDialer {
 public:
  using Clock = std::chrono::steady_clock;
  // `whom` names the peer in errors. All waits end at `limit`, and if `end` is notified.
  SocketDialer(std::vector<SocketAddress> addresses, std::string whom, DialEnd limit, const WakeUp& end)
      : addresses_(std::move(addresses)), whom_(std::move(whom)), limit_(std::move(limit)), end_(end) {}

  // Returns a connected socket on which `handshake` is done, or nullopt if the limit has passed. Throws
  // UnavailableError if no process listens there, if the process there does not speak this protocol or closes the
  // connection, or if `end` was notified. Throws the errors of DialerHandshake.
  std::optional<Descriptor> Dial(DialerHandshake& handshake);

 private:
  enum class Outcome { kDone, kLate };
  // Waits until `events` are there.
  Outcome Wait(int fd, short events);
  // Sets `socket` if there is a connection, else `error` to an errno.
  Outcome Connect(const SocketAddress& address, Descriptor* socket, int* error);
  Outcome Send(int fd, std::string_view bytes);
  Outcome Receive(int fd, size_t size, std::string* bytes);
  [[noreturn]] void Fail(const std::string& why);

  const std::vector<SocketAddress> addresses_;
  const std::string whom_;
  const DialEnd limit_;
  const WakeUp& end_;
};

}  // namespace cohort
