// Tests that a reserved port stays reserved: a task can listen on it again and again, and no process that searches for
// a free port gets it.
#include "cohort/cluster/port_reservation.h"

#include <arpa/inet.h>
#include <grp.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace cohort {
namespace {

class Socket {
 public:
  explicit Socket(int family = AF_INET) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  Socket(std::nullptr_t, int fd) : fd_(fd) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void ReuseAddress() { Set(SO_REUSEADDR); }
  void ReusePort() { Set(SO_REUSEPORT); }
  static sockaddr_in At(int port, uint32_t host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(host);
    return address;
  }
  bool Bind(int port, uint32_t host = INADDR_LOOPBACK) {
    const sockaddr_in address = At(port, host);
    return bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool Listen() { return listen(fd_, 8) == 0; }
  bool Connect(int port) {
    const sockaddr_in address = At(port, INADDR_LOOPBACK);
    return connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  int Port() const {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

 private:
  void Set(int option) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, option, &on, sizeof(on));
  }
  int fd_;
};

TEST(PortReservationTest, ATaskCanListenOnAReservedPort) {
  const PortReservation reservation;
  for (uint32_t host : {INADDR_LOOPBACK, INADDR_ANY}) {
    Socket server;
    server.ReusePort();
    ASSERT_TRUE(server.Bind(reservation.port(), host)) << strerror(errno);
    ASSERT_TRUE(server.Listen()) << strerror(errno);
    Socket client;
    EXPECT_TRUE(client.Connect(reservation.port())) << strerror(errno);
  }
}

TEST(PortReservationTest, APickedPortIsFreeAndNotReserved) {
  const int port = PickUnusedPort();
  Socket server;  // without SO_REUSEPORT, with which a reserved port could be bound, too
  ASSERT_TRUE(server.Bind(port)) << strerror(errno);
  EXPECT_TRUE(server.Listen()) << strerror(errno);
}

TEST(PortReservationTest, WithoutReusePortThePortIsTaken) {
  const PortReservation reservation;
  Socket plain, reusing;
  EXPECT_FALSE(plain.Bind(reservation.port()));
  EXPECT_EQ(errno, EADDRINUSE);
  reusing.ReuseAddress();
  EXPECT_FALSE(reusing.Bind(reservation.port()));
  EXPECT_EQ(errno, EADDRINUSE);
}

// Returns whether a process of the user `uid` can bind the port in some way, on loopback or on all addresses.
bool CanBindAs(uid_t uid, int port) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0) _exit(2);
    for (const uint32_t host : {INADDR_LOOPBACK, INADDR_ANY}) {
      for (int options = 0; options < 4; ++options) {
        Socket thief;
        if ((options & 1) != 0) thief.ReuseAddress();
        if ((options & 2) != 0) thief.ReusePort();
        if (thief.Bind(port, host)) _exit(1);
      }
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2) << "the child could not become another user";
  return WEXITSTATUS(status) == 1;
}

// The port of a dead task: the task has listened on it and has had connections, and now only the reservation is there.
TEST(PortReservationTest, AnotherUserCannotTakeThePortOfADeadTask) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  const PortReservation reservation;
  EXPECT_FALSE(CanBindAs(kNobody, reservation.port())) << "before the task has started";
  {
    Socket task;
    task.ReuseAddress();
    task.ReusePort();
    ASSERT_TRUE(task.Bind(reservation.port()) && task.Listen()) << strerror(errno);
    EXPECT_FALSE(CanBindAs(kNobody, reservation.port())) << "while the task runs";
    Socket client;
    ASSERT_TRUE(client.Connect(reservation.port()));
    const Socket accepted(nullptr, accept4(task.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  EXPECT_FALSE(CanBindAs(kNobody, reservation.port())) << "after the task has died";
  Socket peer;
  EXPECT_FALSE(peer.Connect(reservation.port()));  // and peers are told at once
  EXPECT_EQ(errno, ECONNREFUSED);
  Socket again;  // the same user can start it again
  again.ReusePort();
  EXPECT_TRUE(again.Bind(reservation.port()) && again.Listen()) << strerror(errno);
  EXPECT_TRUE(CanBindAs(kNobody, PickUnusedPort()));  // the test can tell
}

// The server closes first, so that its ends of the connections are in TIME_WAIT on the reserved port.
TEST(PortReservationTest, ARestartedTaskListensAgainAtOnce) {
  const PortReservation reservation;
  for (int life = 0; life < 5; ++life) {
    Socket server;
    server.ReusePort();
    ASSERT_TRUE(server.Bind(reservation.port())) << "life " << life << ": " << strerror(errno);
    ASSERT_TRUE(server.Listen()) << "life " << life << ": " << strerror(errno);
    for (int i = 0; i < 4; ++i) {
      Socket client;
      ASSERT_TRUE(client.Connect(reservation.port()));
      Socket accepted(nullptr, accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      ASSERT_GE(accepted.fd(), 0);
      accepted.Close();
      char byte;
      EXPECT_EQ(recv(client.fd(), &byte, 1, 0), 0);
    }
  }
}

TEST(PortReservationTest, MoveKeepsThePort) {
  PortReservation a;
  const int port = a.port();
  PortReservation b = std::move(a);
  EXPECT_EQ(b.port(), port);
  PortReservation c;
  c = std::move(b);
  EXPECT_EQ(c.port(), port);
  EXPECT_EQ(c.Address(), "127.0.0.1:" + std::to_string(port));
  Socket stranger;
  EXPECT_FALSE(stranger.Bind(port));
}

// Threads ask the system for ports in every way that exists, while reservations are made, used and given back. No
// thread may get the port of a reservation that is held.
TEST(PortReservationTest, NobodyElseIsGivenAReservedPort) {
  constexpr int kReserved = 400;
  std::vector<PortReservation> reservations(kReserved);
  std::set<int> ports;
  for (const auto& r : reservations) ports.insert(r.port());
  ASSERT_EQ(ports.size(), static_cast<size_t>(kReserved));

  Socket sink;
  sink.ReuseAddress();
  ASSERT_TRUE(sink.Bind(0) && listen(sink.fd(), 4096) == 0);
  const int sink_port = sink.Port();
  std::atomic<int> asked{0}, stolen{0}, failed{0};
  auto ask = [&](int kind) {
    std::vector<Socket> held;  // so that the system's search has to go on
    for (int i = 0; i < 1000; ++i) {
      Socket s;
      if (kind % 2 == 1) s.ReuseAddress();
      const bool ok = kind < 2 ? s.Bind(0) && s.Listen() : kind < 4 ? s.Bind(0, INADDR_ANY) : s.Connect(sink_port);
      ++asked;
      if (!ok) {
        ++failed;
        continue;
      }
      if (ports.count(s.Port()) != 0) ++stolen;
      if (kind < 4) held.push_back(std::move(s));
    }
  };
  auto reserve_and_listen = [&] {
    for (int i = 0; i < 1000; ++i) {
      PortReservation mine;
      ++asked;
      if (ports.count(mine.port()) != 0) ++stolen;
      Socket server;
      server.ReusePort();
      if (!server.Bind(mine.port()) || !server.Listen()) ++failed;
    }
  };
  auto listen_on_reserved = [&] {
    for (int round = 0; round < 3; ++round) {
      for (const auto& r : reservations) {
        Socket server;
        server.ReusePort();
        if (!server.Bind(r.port()) || !server.Listen()) ++failed;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int kind = 0; kind < 6; ++kind) threads.emplace_back(ask, kind);
  for (int i = 0; i < 4; ++i) threads.emplace_back(reserve_and_listen);
  threads.emplace_back(listen_on_reserved);
  // The sink is drained, so that a connect never waits for its queue.
  std::thread drain([&] {
    while (true) {
      Socket accepted(nullptr, accept4(sink.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (accepted.fd() < 0) return;
    }
  });
  for (auto& t : threads) t.join();
  shutdown(sink.fd(), SHUT_RDWR);
  drain.join();
  EXPECT_EQ(asked, 10000);
  EXPECT_EQ(stolen, 0);
  EXPECT_EQ(failed, 0);
}

TEST(PortReservationTest, GrpcServesOnAReservedPortAndAgainAfterARestart) {
  const PortReservation reservation;
  for (const std::string& address : {reservation.Address(), "0.0.0.0:" + std::to_string(reservation.port()),
                                     "localhost:" + std::to_string(reservation.port())}) {
    for (int life = 0; life < 3; ++life) {
      int bound = 0;
      grpc::ServerBuilder builder;
      builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &bound);
      auto queue = builder.AddCompletionQueue();  // a server without services needs one
      std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
      ASSERT_NE(server, nullptr) << address << " life " << life;
      EXPECT_EQ(bound, reservation.port());
      auto channel = grpc::CreateChannel(reservation.Address(), grpc::InsecureChannelCredentials());
      EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(60)));
      server->Shutdown(std::chrono::system_clock::now());
      queue->Shutdown();
      void* tag;
      bool ok;
      while (queue->Next(&tag, &ok)) {
      }
    }
  }
}

}  // namespace
}  // namespace cohort
