#include "cohort/cluster/local_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Returns null and sets `why` if the name does not resolve.
Addresses Resolve(const HostPort& address, std::string* why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) *why = gai_strerror(error);
  return Addresses(error == 0 ? list : nullptr);
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family == AF_INET6) {
    const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&ip);
  }
  return false;
}

// `purpose` says what the address is for. `hosts` are the hosts that need a setting, beside all others of the cluster.
void CheckLoopback(const addrinfo* list, const HostPort& address, const char* purpose, const std::string& hosts,
                   bool allow_insecure) {
  if (allow_insecure || EnvironmentAllowsInsecure()) return;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (IsLoopback(entry->ai_addr)) continue;
    throw PermissionDeniedError(
        StrCat("[transport] expected a loopback address ", purpose,
               ", because this task has no certificate for TLS and the connection would not be encrypted; got ",
               address.host, ":", address.port,
               "; make certificates and set COHORT_TLS_FOLDER on each host (`cohort certificates --help`); or, if you ",
               "trust the network, start the task with COHORT_ALLOW_INSECURE=1 before its command, on ", hosts,
               " and on every other host of the cluster (a program may offer --allow_insecure or set allow_insecure ",
               "instead). In both cases give all hosts one job token: copy ~/.config/cohort/token of one host to the ",
               "others, or set COHORT_TOKEN_FILE on each"));
  }
}

// Returns 0, or the errno of an attempt to bind a socket to the address, on any port. Does not listen.
int TryBind(const addrinfo& entry) {
  const int fd = socket(entry.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  SocketAddress address(entry.ai_addr, entry.ai_addrlen);
  address.set_port(0);
  const int error = bind(fd, address.get(), address.size()) == 0 ? 0 : errno;
  close(fd);
  return error;
}

std::vector<SocketAddress> AddressesOf(const addrinfo* list) {
  std::vector<SocketAddress> all;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    all.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  return all;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) : size_(size) {
  std::memcpy(&storage_, address, size);
}

int SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

void SocketAddress::set_port(int port) {
  (family() == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port
                        : reinterpret_cast<sockaddr_in*>(&storage_)->sin_port) = htons(static_cast<uint16_t>(port));
}

std::string SocketAddress::Host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text, sizeof(text));
    return StrCat("[", text, "]");
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof(text));
  return text;
}

std::string SocketAddress::ToString() const { return StrCat(Host(), ":", port()); }

bool EnvironmentAllowsInsecure() {
  const char* text = std::getenv("COHORT_ALLOW_INSECURE");
  const std::string_view value = text == nullptr ? "" : text;
  if (value == "1" || value == "true") return true;
  if (value.empty() || value == "0" || value == "false") return false;
  throw InvalidArgumentError(StrCat("[transport] expected 1 or 0 in COHORT_ALLOW_INSECURE; got '", value, "'"));
}

std::vector<SocketAddress> CheckListenAddress(const HostPort& address, bool allow_insecure) {
  std::string why;
  const Addresses list = Resolve(address, &why);
  if (list == nullptr) {
    throw InvalidArgumentError(StrCat("[transport] cannot listen on ", address.host, ":", address.port, ": ", why,
                                      "; name a local address ", kHowToBind));
  }
  const int error = TryBind(*list);
  if (error == EADDRNOTAVAIL) {
    throw InvalidArgumentError(StrCat("[transport] ", address.host,
                                      " is no address of this machine; if the cluster's "
                                      "address reaches it by other means, name the local one ",
                                      kHowToBind));
  }
  if (error != 0) {
    throw UnavailableError(
        StrCat("[transport] cannot listen on ", address.host, ":", address.port, ": ", std::strerror(error)));
  }
  CheckLoopback(list.get(), address, "to listen on", StrCat("this host, ", address.host, ","), allow_insecure);
  return AddressesOf(list.get());
}

std::vector<SocketAddress> CheckDialAddress(const HostPort& address, bool allow_insecure) {
  std::string why;
  const Addresses list = Resolve(address, &why);
  if (list == nullptr) {
    throw UnavailableError(StrCat("[transport] cannot resolve the host '", address.host, "': ", why));
  }
  CheckLoopback(list.get(), address, "to connect to", StrCat("this host, on ", address.host), allow_insecure);
  return AddressesOf(list.get());
}

}  // namespace cohort
