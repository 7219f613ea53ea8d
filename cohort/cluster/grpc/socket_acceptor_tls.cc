// What SocketAcceptor does with TLS. The first byte of a peer has to be that of a TLS handshake. Then gRPC gets a
// duplicate of the socket, with the credentials of a slot. The socket itself stays here, counts for the limits, and is
// shut down at its deadline. TlsNews tells what the verifier of the slot says of the certificate, and when the peer has
// proved itself; then the socket here is closed, and gRPC's is left alone.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cohort/cluster/grpc/socket_acceptor.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr unsigned char kTlsRecord = 0x16;  // the first byte of a TLS handshake

}  // namespace

std::shared_ptr<TlsNews> SocketAcceptor::UseTls() {
  tls_ = std::make_shared<TlsNews>([this] { wake_.Notify(); });
  return tls_;
}

void SocketAcceptor::OnTlsEvent(Key key) {
  if (pending_.at(key).given) HandleTlsNews();  // what gRPC has found before the end
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  const Pending& pending = found->second;
  if (pending.given) {
    return Drop(key, pending.has_sent
                         ? "it has ended the connection after the TLS handshake, before it has said who it is"
                         : "TLS handshake failed: it has ended before it has shown a certificate");
  }
  unsigned char first = 0;
  const ssize_t got = recv(pending.socket.get(), &first, 1, MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Remove(key);
  if (first == kTlsRecord) return GiveToTls(key);
  Refuse(key,
         Status(Code::kPermissionDenied,
                "[transport] TLS handshake failed: this side speaks only TLS, and the peer does not; give all tasks "
                "and clients of the job certificates (docs/security.md)"));
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
  Watch(EPOLL_CTL_MOD, pending.socket.get(), EPOLLRDHUP, key);
  host_.TakeTlsSocket(slot, std::move(copy));
}

void SocketAcceptor::HandleTlsNews() {
  for (const TlsNews::Verdict& judged : tls_->TakeVerdicts()) OnVerdict(judged);
  for (const std::string& address : tls_->TakeProved()) {
    const auto found = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const auto& entry) { return entry.second.address == address; });
    if (found == pending_.end()) continue;
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
  if (!good) Drop(key, why);
}

}  // namespace cohort
