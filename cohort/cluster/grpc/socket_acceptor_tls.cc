// What SocketAcceptor does with TLS. The first byte of a peer has to be that of a TLS handshake. When the first
// message, a TLS record of at most 4 KiB, is there as a whole, gRPC gets a duplicate of the socket, with the
// credentials of a slot. So a peer that sends a part of it, or goes away at once, costs no TLS handshake. The socket
// itself stays here, counts for the limits, and is shut down at its deadline. TlsNews tells what the verifier of the
// slot says of the certificate, and when the peer has proved itself; then the socket here is closed, and gRPC's is left
// alone.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cohort/cluster/grpc/socket_acceptor.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr unsigned char kTlsRecord = 0x16;  // the first byte of a TLS handshake
constexpr size_t kRecordHead = 5;           // type, version, and the length in two bytes, the highest first

// Sets how many bytes have to be there before the socket is readable.
void SetReadableFrom(int fd, size_t bytes) {
  const int least = static_cast<int>(bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

}  // namespace

std::shared_ptr<TlsNews> SocketAcceptor::UseTls() {
  tls_ = std::make_shared<TlsNews>([this] { wake_.Notify(); });
  return tls_;
}

void SocketAcceptor::OnTlsEvent(Key key, uint32_t events) {
  if (pending_.at(key).given) HandleTlsNews();  // what gRPC has found before the end
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  const Pending& pending = found->second;
  if (pending.given) {
    return Drop(key, pending.has_sent
                         ? "it has ended the connection after the TLS handshake, before it has said who it is"
                         : "TLS handshake failed: it has ended before it has shown a certificate");
  }
  const int fd = pending.socket.get();
  unsigned char head[kRecordHead] = {};
  const ssize_t got = recv(fd, head, sizeof(head), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Remove(key);  // it may be a check whether the port is open
  if (head[0] != kTlsRecord) {
    return Refuse(key,
                  Status(Code::kPermissionDenied,
                         "[transport] TLS handshake failed: this side speaks only TLS, and the peer does not; give "
                         "all tasks and clients of the job certificates (docs/security.md)"));
  }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    return Drop(key, "TLS handshake failed: it has ended after its first bytes");
  }
  if (static_cast<size_t>(got) < kRecordHead) return SetReadableFrom(fd, kRecordHead);
  const size_t length = size_t{head[3]} << 8 | head[4];
  if (length > kLargestHandshakeMessage) {
    return Drop(key, StrCat("TLS handshake failed: expected a first message of at most ", kLargestHandshakeMessage,
                            " bytes; got ", length));
  }
  int there = 0;
  if (ioctl(fd, FIONREAD, &there) != 0 || static_cast<size_t>(there) < kRecordHead + length) {
    return SetReadableFrom(fd, kRecordHead + length);
  }
  SetReadableFrom(fd, 1);
  GiveToTls(key);
}

void SocketAcceptor::GiveToTls(Key key) {
  Pending& pending = pending_.at(key);
  Descriptor copy(fcntl(pending.socket.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) return Drop(key, "this process has no descriptors left");
  const auto free = std::find(slots_.begin(), slots_.end(), Key{0});
  const int slot = static_cast<int>(free - slots_.begin());
  if (free != slots_.end()) {
    *free = key;
    pending.slot = slot;
  }
  pending.given = true;
  pending.charged = true;
  Watch(EPOLL_CTL_MOD, pending.socket.get(), EPOLLRDHUP, key);
  host_.TakeTlsSocket(slot, std::move(copy));
  Charge(kTlsFailureWeight);
}

void SocketAcceptor::HandleTlsNews() {
  for (const TlsNews::Verdict& judged : tls_->TakeVerdicts()) OnVerdict(judged);
  for (const std::string& address : tls_->TakeProved()) {
    const auto found = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const auto& entry) { return entry.second.address == address; });
    if (found == pending_.end()) continue;
    GiveBackCharge(found->second);
    found->second.given = false;  // gRPC's socket stays open
    Watch(EPOLL_CTL_DEL, found->second.socket.get(), 0, found->first);
    Forget(found->first);
  }
}

void SocketAcceptor::OnVerdict(const TlsNews::Verdict& judged) {
  const bool good = judged.verdict.fault == CertificateFault::kNone;
  const std::string why = StrCat("TLS handshake failed: ", judged.verdict.reason);
  if (judged.slot >= static_cast<int>(slots_.size())) {
    if (!good) log_.Refused(StrCat("one of ", pending_.size(), " peers that connect at the same time"), why);
    return;
  }
  const Key key = std::exchange(slots_[static_cast<size_t>(judged.slot)], 0);
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  found->second.slot = -1;
  found->second.has_sent = good;
  if (!good) return Drop(key, why);
  GiveBackCharge(found->second);
}

}  // namespace cohort
