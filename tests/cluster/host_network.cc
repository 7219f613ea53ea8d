#include "tests/cluster/host_network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

bool WriteTo(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return written;
}

std::string BecomeRootOfOwnNamespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (user == 0) return "";
  if (unshare(CLONE_NEWUSER) != 0) {
    return StrCat("making a network needs root or a user namespace; user ", user,
                  " may not make one: ", std::strerror(errno));
  }
  const bool mapped = WriteTo("/proc/self/setgroups", "deny") &&
                      WriteTo("/proc/self/uid_map", StrCat("0 ", user, " 1")) &&
                      WriteTo("/proc/self/gid_map", StrCat("0 ", group, " 1"));
  return mapped ? "" : StrCat("user ", user, " may not become root of a user namespace: ", std::strerror(errno));
}

}  // namespace

std::string WhyNoNetworks() {
  static const std::string why = BecomeRootOfOwnNamespace();
  return why;
}

PrivateNetwork::PrivateNetwork() {
  int error = 0;
  // Another thread makes the network, so that this thread stays in its own network.
  std::thread([&] {
    if (unshare(CLONE_NEWNET) == 0) fd_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    error = errno;
  }).join();
  if (fd_ < 0) {
    throw PermissionDeniedError(StrCat("[host_network] expected the right to make a network (CAP_SYS_ADMIN); got user ",
                                       geteuid(), ": ", std::strerror(error)));
  }
  Do("ip link set lo up");
}

PrivateNetwork::~PrivateNetwork() {
  if (fd_ >= 0) close(fd_);
}

void PrivateNetwork::Enter() const {
  if (setns(fd_, CLONE_NEWNET) == 0) return;
  throw InternalError(StrCat("[host_network] cannot enter the network ", path(), ": ", std::strerror(errno)));
}

void PrivateNetwork::Do(const std::string& command) const {
  LaunchedProgram program({"/bin/sh", "-c", "PATH=$PATH:/sbin:/usr/sbin; " + command}, [this] { Enter(); });
  const int code = program.Wait();
  if (code == 0) return;
  throw InternalError(StrCat("[host_network] '", command, "' ended with ", code, ": ", program.out(), program.err()));
}

std::string PrivateNetwork::path() const { return StrCat("/proc/", getpid(), "/fd/", fd_); }

HostNetwork::HostNetwork(const std::vector<std::string>& addresses) {
  switch_.Do("ip link add name bridge type bridge && ip link set bridge up");
  for (const std::string& address : addresses) {
    const std::string port = StrCat("port", hosts_.size());
    const PrivateNetwork& host = hosts_[address];
    switch_.Do(StrCat("ip link add name ", port, " type veth peer name eth0 netns ", host.path()));
    switch_.Do(StrCat("ip link set ", port, " master bridge up"));
    host.Do(StrCat("ip address add ", address, "/24 dev eth0 && ip link set eth0 up"));
  }
}

}  // namespace cohort::testing
