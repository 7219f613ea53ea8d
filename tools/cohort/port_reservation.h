// PortReservation: a TCP port of 127.0.0.1 that is kept for a task before the task exists and while it
// restarts.
//
// A socket with SO_REUSEADDR is bound to port 0 and never listens. Linux then lets another socket with
// SO_REUSEADDR (gRPC and most servers set it) bind and listen on that very port, while no search for a free
// port (bind to port 0, connect without bind) of any process hands it out (see inet_csk_find_open_port and
// __inet_hash_connect in Linux, net/ipv4; holds while net.ipv4.ip_autobind_reuse is 0, its default).
#pragma once

#include <string>

namespace cohort::tools {

class PortReservation {
 public:
  // Reserves a port that the system chooses. Throws UnavailableError when there is none.
  PortReservation();
  // Gives the port back; sockets that listen on it stay.
  ~PortReservation();
  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;

  int port() const { return port_; }
  // "127.0.0.1:port".
  std::string Address() const;

 private:
  int fd_ = -1;  // close-on-exec
  int port_ = 0;
};

}  // namespace cohort::tools
