#include "cohort/cluster/grpc/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/listening_sockets.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int kBacklog = 256;
constexpr size_t kLengthBytes = 4;

void SetOption(int fd, int level, int option) {
  const int on = 1;
  setsockopt(fd, level, option, &on, sizeof(on));
}

struct BoundSocket {
  Descriptor socket;
  int error = 0;  // an errno, or 0
};

BoundSocket Bind(const SocketAddress& address, bool share) {
  BoundSocket bound{Descriptor(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int fd = bound.socket.get();
  if (fd < 0) {
    bound.error = errno;
    return bound;
  }
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR);
  if (share) SetOption(fd, SOL_SOCKET, SO_REUSEPORT);
  if (address.family() == AF_INET6) {
    const int off = 0;  // the wildcard address takes IPv4, too
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd, address.get(), address.size()) != 0) bound.error = errno;
  return bound;
}

// Binds and listens. Of two sockets that share a port with a reservation, only one may listen. Linux would give each of
// them a part of the connections, so this is checked, before and after.
BoundSocket BindAndListen(const SocketAddress& address) {
  BoundSocket bound = Bind(address, false);
  bool shared = false;
  if (bound.error == EADDRINUSE && address.port() != 0) {
    bound = Bind(address, true);
    shared = bound.error == 0;
    if (shared && CountListening(address) > 0) bound.error = EADDRINUSE;
  }
  if (bound.error != 0) return bound;
  if (listen(bound.socket.get(), kBacklog) != 0) {
    bound.error = errno;
  } else if (shared && CountListening(address) > 1) {
    bound.error = EADDRINUSE;
  }
  return bound;
}

SocketAddress BoundAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return SocketAddress(reinterpret_cast<sockaddr*>(&address), size);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

WakeUp::WakeUp() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_.get() < 0) throw ResourceExhaustedError(StrCat("[transport] eventfd failed: ", std::strerror(errno)));
}

void WakeUp::Notify() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof(one));  // fails only if it is notified already
}

void WakeUp::Clear() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(fd_.get(), &count, sizeof(count));  // fails only if it is clear already
}

Listener ListenOn(const std::string& address, bool allow_insecure) {
  const HostPort where = ParseAddress(address);
  Listener listener;
  listener.port = where.port;
  int error = 0;
  for (SocketAddress& one : CheckListenAddress(where, allow_insecure)) {
    one.set_port(listener.port);
    BoundSocket bound = BindAndListen(one);
    if (bound.error == 0) {
      listener.port = BoundAddress(bound.socket.get()).port();
      listener.sockets.push_back(std::move(bound.socket));
    } else if (error != EADDRINUSE) {
      error = bound.error;
    }
  }
  if (listener.sockets.empty() || error == EADDRINUSE) {
    throw UnavailableError(
        StrCat("[transport] cannot listen on ", address, ": ",
               error == EADDRINUSE ? "the port is in use by another process" : std::strerror(error)));
  }
  return listener;
}

void PrepareSocket(int fd) { SetOption(fd, IPPROTO_TCP, TCP_NODELAY); }

std::optional<SocketAddress> PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {  // an IPv4 peer of an IPv6 socket
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = v6.sin6_port;
    std::memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    return SocketAddress(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  }
  return SocketAddress(reinterpret_cast<sockaddr*>(&address), size);
}

std::string WithLength(std::string_view message) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes.push_back(static_cast<char>(message.size() >> (8 * i)));
  bytes.append(message);
  return bytes;
}

size_t MessageLength(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, kLengthBytes);
  size_t length = 0;
  for (size_t i = 0; i < first.size(); ++i) length |= static_cast<size_t>(static_cast<uint8_t>(first[i])) << (8 * i);
  if (length > 0 && length <= kLargestHandshakeMessage) return length;
  const bool http = first == "PRI " || first == "GET " || first == "POST";
  const bool tls = first.substr(0, 2) == "\x16\x03";
  throw DataLossError(StrCat("[handshake] expected a message of 1 to ", kLargestHandshakeMessage, " bytes; got ",
                             length,
                             http  ? " (HTTP: another program, or a release of Cohort with a protocol before 10)"
                             : tls ? " (TLS: the peer uses TLS, and this task does not)"
                                   : ""));
}

std::optional<Descriptor> SocketDialer::Dial(DialerHandshake& handshake) {
  Descriptor socket;
  std::string why;
  for (const SocketAddress& address : addresses_) {
    int error = 0;
    if (Connect(address, &socket, &error) == Outcome::kLate) return std::nullopt;
    if (error == 0) break;
    why = std::strerror(error);
  }
  if (socket.get() < 0) Fail(why);
  PrepareSocket(socket.get());
  if (Send(socket.get(), WithLength(handshake.hello())) == Outcome::kLate) return std::nullopt;
  try {
    while (!handshake.done()) {
      std::string length, message;
      if (Receive(socket.get(), kLengthBytes, &length) == Outcome::kLate) return std::nullopt;
      if (Receive(socket.get(), MessageLength(length), &message) == Outcome::kLate) return std::nullopt;
      const std::string answer = handshake.OnMessage(message);
      if (!answer.empty() && Send(socket.get(), WithLength(answer)) == Outcome::kLate) return std::nullopt;
    }
  } catch (const DataLossError& e) {
    Fail(StrCat("the process there does not speak this protocol: ", e.what()));
  }
  return socket;
}

SocketDialer::Outcome SocketDialer::Wait(int fd, short events) {
  for (;;) {
    pollfd waits[] = {{fd, events, 0}, {end_.fd(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit_.deadline - Clock::now()).count();
    const int64_t longest = limit_.given_up ? kAskIfGivenUp.count() : INT32_MAX;
    const int ready = poll(waits, 2, static_cast<int>(std::clamp<int64_t>(left, 0, longest)));
    if (ready < 0 && errno != EINTR) Fail(std::strerror(errno));
    if (ready > 0 && waits[1].revents != 0) throw UnavailableError("[transport] the transport is shut down");
    if (ready > 0) return Outcome::kDone;
    if (Clock::now() >= limit_.deadline || (limit_.given_up && limit_.given_up())) return Outcome::kLate;
  }
}

SocketDialer::Outcome SocketDialer::Connect(const SocketAddress& address, Descriptor* socket, int* error) {
  Descriptor tried(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = tried.get();
  *error = fd >= 0 && connect(fd, address.get(), address.size()) == 0 ? 0 : errno;
  if (fd < 0) return Outcome::kDone;
  if (*error == EINPROGRESS) {
    if (Wait(fd, POLLOUT) == Outcome::kLate) return Outcome::kLate;
    socklen_t size = sizeof(*error);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, error, &size);
  }
  // If nobody listens on a port, Linux can connect a socket that has this port to itself.
  if (*error == 0 && BoundAddress(fd).ToString() == address.ToString()) *error = ECONNREFUSED;
  if (*error == 0) *socket = std::move(tried);
  return Outcome::kDone;
}

SocketDialer::Outcome SocketDialer::Send(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (Wait(fd, POLLOUT) == Outcome::kLate) return Outcome::kLate;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Outcome::kDone;  // a refusal may be there to read; else Receive reports the end
    } else if (errno != EINTR) {
      Fail(std::strerror(errno));
    }
  }
  return Outcome::kDone;
}

SocketDialer::Outcome SocketDialer::Receive(int fd, size_t size, std::string* bytes) {
  bytes->resize(size);
  for (size_t at = 0; at < size;) {
    const ssize_t got = recv(fd, bytes->data() + at, size - at, 0);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (got == 0) {
      Fail("it closed the connection in the handshake");
    } else if (errno == EAGAIN) {
      if (Wait(fd, POLLIN) == Outcome::kLate) return Outcome::kLate;
    } else if (errno != EINTR) {
      Fail(std::strerror(errno));
    }
  }
  return Outcome::kDone;
}

void SocketDialer::Fail(const std::string& why) {
  throw UnavailableError(StrCat("[transport] no connection to ", whom_, ": ", why));
}

}  // namespace cohort
