// Finds and checks the addresses to listen on and to connect to.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"

namespace cohort {

// Returns whether the environment allows connections without TLS to other hosts: COHORT_ALLOW_INSECURE is "1" or
// "true". Throws InvalidArgumentError unless the variable is that, "0", "false", empty or not set.
bool EnvironmentAllowsInsecure();

// An IPv4 or IPv6 address with a port, as the system's calls take it.
class SocketAddress {
 public:
  SocketAddress(const sockaddr* address, socklen_t size);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  int port() const;
  void set_port(int port);
  // Returns, for example, "127.0.0.1:2222" or "[::1]:2222".
  std::string ToString() const;
  // Returns the same without the port.
  std::string Host() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_;
};

// Ends a sentence "name the local address ...": every program has the variable, and some have the flag.
inline constexpr char kHowToBind[] = "in COHORT_BIND, with ServerOptions::bind or, if the program has it, with --bind";

// `allow_insecure`: whether connections to other hosts are allowed, by the user or because TLS protects them.
// Returns the addresses of the host, at least one. Throws InvalidArgumentError if the host does not resolve or is not
// an address of this machine (the message says how to name another one), and PermissionDeniedError if the address is
// not a loopback address and neither `allow_insecure` nor the environment allows it. Throws what
// EnvironmentAllowsInsecure throws.
std::vector<SocketAddress> CheckListenAddress(const HostPort& address, bool allow_insecure);

// Returns the addresses of the host, at least one. Throws UnavailableError if the host does not resolve (it may resolve
// later), and PermissionDeniedError if the address is not a loopback address and neither `allow_insecure` nor the
// environment allows it. Throws what EnvironmentAllowsInsecure throws.
std::vector<SocketAddress> CheckDialAddress(const HostPort& address, bool allow_insecure);

}  // namespace cohort
