// The kernel's sock_diag answers over a netlink socket. Unlike /proc/net/tcp it can list the listening sockets alone.
// On a machine with many connections, or a large table for them, that is much less work.
#include "cohort/cluster/grpc/listening_sockets.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "cohort/cluster/grpc/socket.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

struct ListRequest {
  nlmsghdr header;
  inet_diag_req_v2 sockets;
};

[[noreturn]] void NoAnswerOfTheSystem(const char* call, int error) {
  throw UnavailableError(StrCat("[transport] cannot find out who listens on a port: ", call,
                                " of NETLINK_SOCK_DIAG failed: ", std::strerror(error)));
}

void AskFor(int netlink, int family) {
  ListRequest request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.sockets.sdiag_family = static_cast<uint8_t>(family);
  request.sockets.sdiag_protocol = IPPROTO_TCP;
  request.sockets.idiag_states = 1U << TCP_LISTEN;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &request, sizeof(request), 0, reinterpret_cast<sockaddr*>(&kernel), sizeof(kernel)) < 0) {
    NoAnswerOfTheSystem("send", errno);
  }
}

// The bytes of an address in network order. A wildcard address is all zeros.
bool IsAnyHost(const void* host, size_t size) {
  static constexpr unsigned char kZeros[sizeof(in6_addr)] = {};
  return std::memcmp(host, kZeros, size) == 0;
}

bool Overlap(const inet_diag_msg& theirs, const SocketAddress& mine) {
  if (ntohs(theirs.id.idiag_sport) != mine.port()) return false;
  const bool six = mine.family() == AF_INET6;
  const void* host = six ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(mine.get())->sin6_addr)
                         : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(mine.get())->sin_addr);
  const size_t size = six ? sizeof(in6_addr) : sizeof(in_addr);
  const size_t their_size = theirs.idiag_family == AF_INET6 ? sizeof(in6_addr) : sizeof(in_addr);
  if (IsAnyHost(host, size) || IsAnyHost(theirs.id.idiag_src, their_size)) return true;
  return size == their_size && std::memcmp(host, theirs.id.idiag_src, size) == 0;
}

// Reads the answer to its end.
int CountInAnswer(int netlink, const SocketAddress& mine) {
  alignas(nlmsghdr) char bytes[16384];
  for (int count = 0;;) {
    const ssize_t got = recv(netlink, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) NoAnswerOfTheSystem("recv", got == 0 ? EPROTO : errno);
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<nlmsghdr*>(bytes); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return count;
      if (message->nlmsg_type == NLMSG_ERROR) {
        NoAnswerOfTheSystem("dump", -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error);
      }
      if (Overlap(*static_cast<const inet_diag_msg*>(NLMSG_DATA(message)), mine)) ++count;
    }
  }
}

int CountOfTheSystem(const SocketAddress& address) {
  const Descriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.get() < 0) NoAnswerOfTheSystem("socket", errno);
  const timeval limit{10, 0};
  setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  int count = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    AskFor(netlink.get(), family);
    count += CountInAnswer(netlink.get(), address);
  }
  return count;
}

}  // namespace

int CountListening(const SocketAddress& address) {
  try {
    return CountOfTheSystem(address);
  } catch (const UnavailableError& e) {
    LogWarning("transport", e.what(), "; a second server on ", address.ToString(), " would not be noticed");
    return 0;
  }
}

}  // namespace cohort
