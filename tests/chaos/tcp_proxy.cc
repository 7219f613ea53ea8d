// The proxy accepts connections on one thread. Each connection (Link) has one thread for each direction, which copies
// bytes and waits in Pass while the link is slow or cut.
#include "tests/chaos/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr ssize_t kLargePiece = 4096;
constexpr size_t kPiece = 16 * 1024;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int NewSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw UnavailableError("[proxy] no socket");
  return fd;
}

void SetUp(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = send(fd, data, size, MSG_NOSIGNAL);
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

// The two sockets of a connection. They are closed when neither direction uses them any more.
struct TcpProxy::Link {
  Link(int number, int peer, int target) : number(number), peer(peer), target(target) {}
  ~Link() {
    close(peer);
    close(target);
  }
  void Shutdown() const {
    shutdown(peer, SHUT_RDWR);
    shutdown(target, SHUT_RDWR);
  }
  const int number;
  const int peer;
  const int target;
};

TcpProxy::TcpProxy(int target_port, int64_t bytes_per_second)
    : target_port_(target_port), bytes_per_second_(bytes_per_second), listener_(NewSocket()) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(listener_);
    throw UnavailableError("[proxy] cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { AcceptLoop(); });
}

TcpProxy::~TcpProxy() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    ended_ = true;
    changed_.NotifyAll();
    for (const auto& link : links_) link->Shutdown();
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    MutexLock lock(mu_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  close(listener_);
}

std::string TcpProxy::address() const { return StrCat("127.0.0.1:", port_); }

void TcpProxy::SetCut(bool cut) {
  MutexLock lock(mu_);
  cut_ = cut;
  changed_.NotifyAll();
}

void TcpProxy::CutOnly(int connection) {
  MutexLock lock(mu_);
  cut_only_ = connection;
}

void TcpProxy::AcceptAtMost(int connections) {
  MutexLock lock(mu_);
  at_most_ = connections;
}

int TcpProxy::Number() {
  MutexLock lock(mu_);
  return accepted_ < at_most_ ? accepted_++ : -1;
}

void TcpProxy::AcceptLoop() {
  for (;;) {
    const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) return;
    const int number = Number();
    if (number < 0) {
      close(peer);
      continue;
    }
    const int target = NewSocket();
    SetUp(peer);
    SetUp(target);
    const auto link = std::make_shared<Link>(number, peer, target);
    const sockaddr_in address = Loopback(target_port_);
    if (connect(target, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) continue;
    MutexLock lock(mu_);
    if (ended_) return;
    links_.push_back(link);
    threads_.emplace_back([this, link] { Forward(link, link->peer, link->target, 0); });
    threads_.emplace_back([this, link] { Forward(link, link->target, link->peer, 1); });
  }
}

bool TcpProxy::Pass(const Link& link, int direction, size_t bytes) {
  MutexLock lock(mu_);
  while ((cut_ || cut_only_ == link.number) && !ended_) changed_.Wait(mu_);
  if (bytes_per_second_ > 0) {
    Direction& way = directions_[direction];
    const auto duration = std::chrono::nanoseconds(static_cast<int64_t>(bytes) * 1'000'000'000 / bytes_per_second_);
    way.free_at = std::max(way.free_at, Clock::now()) + duration;
    const Clock::time_point through = way.free_at;
    while (!ended_ && Clock::now() < through) changed_.WaitUntil(mu_, through);
  }
  return !ended_;
}

void TcpProxy::Forward(const std::shared_ptr<Link>& link, int from, int to, int direction) {
  char piece[kPiece];
  for (;;) {
    const ssize_t size = recv(from, piece, sizeof(piece), 0);
    if (size <= 0 || !Pass(*link, direction, static_cast<size_t>(size))) break;
    if (size >= kLargePiece && damage_.exchange(false)) piece[size / 2] = static_cast<char>(piece[size / 2] ^ 1);
    if (!WriteAll(to, piece, static_cast<size_t>(size))) break;
    forwarded_ += size;
  }
  link->Shutdown();
  MutexLock lock(mu_);
  links_.erase(std::remove(links_.begin(), links_.end(), link), links_.end());
}

}  // namespace cohort::testing
