#include "cohort/cluster/port_reservation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

[[noreturn]] void Fail(const char* call) {
  throw UnavailableError(StrCat("[cluster] expected a free port on 127.0.0.1; ", call,
                                " failed: ", std::strerror(errno),
                                "; close programs that hold ports or raise the limit of open files"));
}

}  // namespace

PortReservation::PortReservation() {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) Fail("socket");
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 || bind(fd_, raw, size) != 0 ||
      getsockname(fd_, raw, &size) != 0) {
    const int error = errno;
    close(fd_);
    errno = error;
    Fail("bind");
  }
  port_ = ntohs(address.sin_port);
}

PortReservation::~PortReservation() {
  if (fd_ >= 0) close(fd_);
}

PortReservation::PortReservation(PortReservation&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(std::exchange(other.port_, 0)) {}

PortReservation& PortReservation::operator=(PortReservation&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

int PickUnusedPort() { return PortReservation().port(); }

std::string PortReservation::Address() const { return StrCat("127.0.0.1:", port_); }

}  // namespace cohort
