// One epoll serves everything. Its keys are: 0 for the wake-up, 1 and up for the listening sockets, kFirstPending and
// up for handshakes. A handshake reads one message at a time, byte for byte: what comes after the last message belongs
// to the next owner of the socket.
#include "cohort/cluster/grpc/socket_acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

constexpr uint64_t kWakeKey = 0;
constexpr uint64_t kFirstPending = 1 << 20;
constexpr size_t kHeaderBytes = 4;
constexpr int kAcceptsInARow = 64;    // so that handshakes go on while many peers connect
constexpr int kTlsAcceptsInARow = 8;  // so that not many TLS handshakes are under way when too many have failed
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
// Failed handshakes are counted in intervals of this length, so that a pause is no longer.
constexpr std::chrono::milliseconds kFailureInterval{100};
constexpr std::chrono::seconds kBetweenWarnings{60};

}  // namespace

SocketAcceptor::SocketAcceptor(SocketAcceptorHost& host, std::string token, const AcceptorLimits& limits)
    : host_(host),
      token_(std::move(token)),
      limits_(limits),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      next_key_(kFirstPending) {
  if (epoll_.get() < 0) throw ResourceExhaustedError(StrCat("[transport] epoll failed: ", std::strerror(errno)));
}

SocketAcceptor::~SocketAcceptor() { Stop(); }

void SocketAcceptor::Start(Listener listener) {
  listener_ = std::move(listener);
  Watch(EPOLL_CTL_ADD, wake_.fd(), EPOLLIN, kWakeKey);
  for (size_t i = 0; i < listener_.sockets.size(); ++i) {
    Watch(EPOLL_CTL_ADD, listener_.sockets[i].get(), EPOLLIN, i + 1);
  }
  thread_ = std::thread([this] {
    SetThreadName("cohort-accept");
    Run();
  });
}

void SocketAcceptor::Stop() {
  if (tls_ != nullptr) tls_->Close();
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake_.Notify();
  thread_.join();
  pending_.clear();
  listener_.sockets.clear();
}

void SocketAcceptor::Watch(int operation, int fd, uint32_t events, Key key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  epoll_ctl(epoll_.get(), operation, fd, &event);
}

void SocketAcceptor::Run() {
  for (;;) {
    epoll_event events[64];
    if (tls_ != nullptr) HandleTlsNews();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), DropLate());
    if (paused_until_ && Clock::now() >= *paused_until_) EndPause();
    for (int i = 0; i < count; ++i) {
      const Key key = events[i].data.u64;
      if (key == kWakeKey) {
        wake_.Clear();
        if (stopping_) {
          if (tls_ != nullptr) HandleTlsNews();  // a peer that has seen its refusal is logged
          return;
        }
        std::vector<Key> waiting;
        for (const auto& [pending, state] : pending_) {
          if (state.handshake.proved() && state.out.empty()) waiting.push_back(pending);
        }
        for (const Key pending : waiting) TryWelcome(pending);
      } else if (key < kFirstPending) {
        AcceptFrom(listener_.sockets[key - 1].get());
      } else {
        OnEvent(key, events[i].events);
      }
    }
  }
}

void SocketAcceptor::AcceptFrom(int listener) {
  const int accepts = tls_ == nullptr ? kAcceptsInARow : kTlsAcceptsInARow;
  for (int i = 0; i < accepts && !paused_until_; ++i) {
    Descriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() >= 0) {
      Add(std::move(socket));
      continue;
    }
    const int error = errno;
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EAGAIN) return;
    if (DropOldest("", "this process has no descriptors left")) continue;
    LogWarning("transport", "cannot accept connections: ", std::strerror(error), "; tries again in ",
               kNoDescriptorsPause.count(), " ms");
    return Pause(Clock::now() + kNoDescriptorsPause);
  }
}

void SocketAcceptor::Pause(Clock::time_point end) {
  paused_until_ = end;
  for (size_t i = 0; i < listener_.sockets.size(); ++i) {
    Watch(EPOLL_CTL_MOD, listener_.sockets[i].get(), 0, i + 1);
  }
}

void SocketAcceptor::EndPause() {
  ForgetFailures();
  if (failures_ >= FailuresOfAnInterval()) {
    paused_until_ = failures_since_ + kFailureInterval;
    return;
  }
  paused_until_.reset();
  for (size_t i = 0; i < listener_.sockets.size(); ++i) {
    Watch(EPOLL_CTL_MOD, listener_.sockets[i].get(), EPOLLIN, i + 1);
  }
}

void SocketAcceptor::Charge(int failures) {
  ForgetFailures();
  failures_ += failures;
  if (failures_ >= FailuresOfAnInterval() && !paused_until_) Pause(failures_since_ + kFailureInterval);
}

void SocketAcceptor::GiveBackCharge(Pending& pending) {
  if (!std::exchange(pending.charged, false)) return;
  failures_ = std::max(0, failures_ - kTlsFailureWeight);
  if (paused_until_) EndPause();
}

void SocketAcceptor::WarnOfFailures() {
  if (failures_ < FailuresOfAnInterval()) return;
  const Clock::time_point now = Clock::now();
  if (now < next_warning_) return;
  next_warning_ = now + kBetweenWarnings;
  LogWarning("transport", "more than ", limits_.failures_per_second,
             " handshakes a second fail (max_failed_handshakes_per_second; a TLS handshake counts as ",
             kTlsFailureWeight, "), so this task accepts connections more slowly; new peers may have to wait");
}

void SocketAcceptor::ForgetFailures() {
  const Clock::time_point now = Clock::now();
  const auto passed = (now - failures_since_) / kFailureInterval;
  if (passed <= 0) return;
  failures_ = static_cast<int>(std::max<int64_t>(0, failures_ - passed * int64_t{FailuresOfAnInterval()}));
  failures_since_ = failures_ == 0 ? now : failures_since_ + passed * kFailureInterval;
}

int SocketAcceptor::FailuresOfAnInterval() const {
  return std::max(1, static_cast<int>(limits_.failures_per_second * kFailureInterval / std::chrono::seconds(1)));
}

void SocketAcceptor::Add(Descriptor socket) {
  PrepareSocket(socket.get());
  const auto peer = PeerOf(socket.get());
  if (!peer) return;  // it has gone already
  MakeRoom(peer->Host());
  const Key key = next_key_++;
  const int fd = socket.get();
  AcceptorHandshake handshake(token_, [this](uint64_t number) { return host_.SecretOf(number); });
  pending_.emplace(key, Pending{std::move(socket), peer->ToString(), peer->Host(), std::move(handshake),
                                Clock::now() + limits_.timeout, "", "", false});
  Watch(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, key);
}

void SocketAcceptor::MakeRoom(const std::string& host) {
  if (CountUnproved(host) >= limits_.handshakes_per_address) {
    DropOldest(host, "too many handshakes of this address at the same time (max_handshakes_per_address)");
  } else if (CountUnproved("") >= limits_.handshakes) {
    DropOldest("", "too many handshakes at the same time (max_handshakes)");
  }
}

int SocketAcceptor::CountUnproved(const std::string& host) const {
  return static_cast<int>(std::count_if(pending_.begin(), pending_.end(), [&host](const auto& entry) {
    return !entry.second.handshake.proved() && (host.empty() || entry.second.host == host);
  }));
}

bool SocketAcceptor::DropOldest(const std::string& host, const char* why) {
  Key oldest = 0;
  bool oldest_has_sent = true;
  for (const auto& [key, pending] : pending_) {
    if (pending.handshake.proved() || (!host.empty() && pending.host != host)) continue;
    if (oldest == 0 || (oldest_has_sent && !pending.has_sent)) {
      oldest = key;
      oldest_has_sent = pending.has_sent;
    }
    if (!oldest_has_sent) break;
  }
  if (oldest == 0) return false;
  Drop(oldest, why);
  return true;
}

void SocketAcceptor::OnEvent(Key key, uint32_t events) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;  // an event before has removed it
  if (tls_ != nullptr) return OnTlsEvent(key, events);
  if ((events & EPOLLOUT) != 0) return WriteTo(key);
  // A peer that goes away without a word may be a check whether the port is open.
  const bool waits = found->second.handshake.proved();
  if ((events & (EPOLLERR | EPOLLHUP)) != 0 || (waits && (events & EPOLLRDHUP) != 0)) return Remove(key);
  ReadFrom(key);
}

void SocketAcceptor::ReadFrom(Key key) {
  Pending& pending = pending_.at(key);
  try {
    for (;;) {
      const size_t whole = pending.in.size() < kHeaderBytes ? kHeaderBytes : kHeaderBytes + MessageLength(pending.in);
      char bytes[kLargestHandshakeMessage];
      const ssize_t got = recv(pending.socket.get(), bytes, std::min(whole - pending.in.size(), sizeof(bytes)), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return Remove(key);
      pending.in.append(bytes, static_cast<size_t>(got));
      if (whole == kHeaderBytes || pending.in.size() < whole) continue;
      const std::string answer = pending.handshake.OnMessage(std::string_view(pending.in).substr(kHeaderBytes));
      pending.in.clear();
      pending.has_sent = true;
      if (pending.handshake.proved()) return TryWelcome(key);
      pending.out += WithLength(answer);
      return WriteTo(key);
    }
  } catch (...) {
    Refuse(key, Status::FromCurrentException());
  }
}

void SocketAcceptor::TryWelcome(Key key) {
  Pending& pending = pending_.at(key);
  try {
    const auto messages = host_.Welcome(pending.handshake);
    if (!messages) return;
    for (const std::string& message : *messages) pending.out += WithLength(message);
  } catch (...) {
    return Refuse(key, Status::FromCurrentException());
  }
  WriteTo(key);
}

void SocketAcceptor::WriteTo(Key key) {
  Pending& pending = pending_.at(key);
  const int fd = pending.socket.get();
  while (!pending.out.empty()) {
    const ssize_t sent = send(fd, pending.out.data(), pending.out.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      pending.out.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      return Watch(EPOLL_CTL_MOD, fd, EPOLLOUT, key);
    } else if (errno != EINTR) {
      return Remove(key);
    }
  }
  if (!pending.handshake.proved()) return Watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLRDHUP, key);
  Watch(EPOLL_CTL_DEL, fd, 0, key);
  Pending done = std::move(pending);
  pending_.erase(key);
  host_.TakeSocket(done.handshake, std::move(done.socket));
}

void SocketAcceptor::Refuse(Key key, const Status& why) {
  const Pending& pending = pending_.at(key);
  log_.Refused(pending.address, why.message());
  // If it does not fit into the socket's buffer, the peer sees only the end.
  const std::string refusal = WithLength(EncodeRefusal(why));
  [[maybe_unused]] const ssize_t sent = send(pending.socket.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL);
  Remove(key);
}

void SocketAcceptor::Drop(Key key, const std::string& why) {
  log_.Refused(pending_.at(key).address, why);
  Remove(key);
}

int SocketAcceptor::DropLate() {
  const Clock::time_point now = Clock::now();
  while (!pending_.empty() && pending_.begin()->second.deadline <= now) {
    Drop(pending_.begin()->first, StrCat("its handshake was not over after ", limits_.timeout.count(), " ms"));
  }
  if (pending_.empty() && !paused_until_) return -1;
  Clock::time_point next = paused_until_.value_or(Clock::time_point::max());
  if (!pending_.empty()) next = std::min(next, pending_.begin()->second.deadline);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX));
}

void SocketAcceptor::Remove(Key key) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  const bool failed = !found->second.handshake.proved();
  const bool charged = found->second.charged;
  Forget(key);
  if (!failed) return;
  if (!charged) Charge(1);
  WarnOfFailures();
}

void SocketAcceptor::Forget(Key key) {
  const auto found = pending_.find(key);
  if (found->second.slot >= 0) slots_[static_cast<size_t>(found->second.slot)] = 0;
  if (found->second.given) {  // the end of this copy is not the end of the connection
    Watch(EPOLL_CTL_DEL, found->second.socket.get(), 0, key);
    shutdown(found->second.socket.get(), SHUT_RDWR);
  }
  pending_.erase(found);
}

}  // namespace cohort
