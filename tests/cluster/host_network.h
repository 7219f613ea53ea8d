// PrivateNetwork and HostNetwork: networks of their own for the processes of a test. They are Linux network namespaces
// without names: a file descriptor of this process holds each of them. So tests may run at the same time with the same
// addresses, the machine's own network never changes, and the kernel removes everything when the process ends, however
// it ends. To look into one while a test runs: `nsenter --net=/proc/PID/fd/N`, with path().
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cohort::testing {

// Returns "" if this process may make networks. Otherwise returns the reason, for GTEST_SKIP. For root it returns "",
// even if a container has taken root's rights: then the constructors below throw. The first call of another user moves
// this process into a user namespace of its own, in which it is root. Requires: the process has only one thread.
std::string WhyNoNetworks();

// A network with only loopback, which is up. The owner is the test. It ends when this object and all processes in the
// network have ended. Thread-safe.
class PrivateNetwork {
 public:
  // Throws PermissionDeniedError if the process lacks the right to make a network.
  PrivateNetwork();
  ~PrivateNetwork();
  PrivateNetwork(const PrivateNetwork&) = delete;
  PrivateNetwork& operator=(const PrivateNetwork&) = delete;

  // Moves the calling thread, and all processes that it starts later, into the network. Throws InternalError if the
  // system refuses. It may be called between fork and exec.
  void Enter() const;
  // Runs a command of the shell in the network and waits for its end. The programs `ip` and `tc` are found. Throws
  // InternalError, which has the command and what it printed, if the exit code is not 0.
  void Do(const std::string& command) const;
  // Returns a path that `ip link ... netns` takes for this network.
  std::string path() const;

 private:
  int fd_ = -1;
};

// Hosts that are connected by a bridge. Each host has one address, such as "192.168.100.42", in a subnet of 24 bits.
class HostNetwork {
 public:
  // Throws what PrivateNetwork throws, and InternalError if `ip` fails.
  explicit HostNetwork(const std::vector<std::string>& addresses);

  // Returns the network of the host. Throws std::out_of_range if there is no host with this address.
  const PrivateNetwork& host(const std::string& address) const { return hosts_.at(address); }

 private:
  const PrivateNetwork switch_;  // the bridge is here
  std::map<std::string, PrivateNetwork> hosts_;
};

}  // namespace cohort::testing
