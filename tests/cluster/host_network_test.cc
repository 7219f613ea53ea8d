// Tests of the networks in which the guides' commands run.
#include "tests/cluster/host_network.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "cohort/core/error.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

sockaddr_in Endpoint(const std::string& host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// Runs `call` with a new socket on a thread inside of the network. Returns the socket, or -1 if `call` fails.
template <typename Call>
int SocketIn(const PrivateNetwork& network, const Call& call) {
  int fd = -1;
  std::thread([&] {
    network.Enter();
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (call(fd)) return;
    close(fd);
    fd = -1;
  }).join();
  return fd;
}

int ListenIn(const HostNetwork& network, const std::string& host, uint16_t port) {
  return SocketIn(network.host(host), [&](int fd) {
    const sockaddr_in here = Endpoint(host, port);
    return bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof(here)) == 0 && listen(fd, 1) == 0;
  });
}

bool Connects(const HostNetwork& network, const std::string& from, const std::string& to, uint16_t port) {
  const int fd = SocketIn(network.host(from), [&](int socket) {
    const timeval limit{10, 0};
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // it limits connect()
    const sockaddr_in there = Endpoint(to, port);
    return connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) == 0;
  });
  if (fd >= 0) close(fd);
  return fd >= 0;
}

std::string LinksOfThisMachine() {
  LaunchedProgram program({"/bin/sh", "-c", "PATH=$PATH:/sbin:/usr/sbin; ip -oneline link && ip netns list"});
  EXPECT_EQ(program.Wait(), 0) << program.err();
  return program.out();
}

class HostNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoNetworks(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(HostNetworkTest, HostsReachEachOtherAndNobodyElse) {
  const HostNetwork network({"192.168.1.1", "192.168.1.12"}), other({"192.168.1.1", "192.168.1.13"});
  const int listening = ListenIn(network, "192.168.1.1", 2222);
  ASSERT_GE(listening, 0) << std::strerror(errno);
  EXPECT_TRUE(Connects(network, "192.168.1.12", "192.168.1.1", 2222));
  EXPECT_TRUE(Connects(network, "192.168.1.1", "192.168.1.1", 2222));
  EXPECT_FALSE(Connects(network, "192.168.1.12", "192.168.1.1", 2223));
  EXPECT_FALSE(Connects(other, "192.168.1.13", "192.168.1.1", 2222));  // the host of the same address does not listen
  close(listening);
}

TEST_F(HostNetworkTest, TheMachinesOwnNetworkStaysAsItWas) {
  const std::string before = LinksOfThisMachine();
  const HostNetwork network({"172.17.0.2"});
  EXPECT_EQ(LinksOfThisMachine(), before);
}

TEST_F(HostNetworkTest, ACommandThatFailsIsShown) {
  const PrivateNetwork network;
  try {
    network.Do("ip link set nothing up");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("'ip link set nothing up' ended with 1"), HasSubstr("nothing")));
  }
}

}  // namespace
}  // namespace cohort::testing
