// PortReservation: keeps a TCP port of 127.0.0.1 for a task, before the task exists and while it restarts.
//
// A socket with SO_REUSEPORT, and without SO_REUSEADDR, is bound to port 0 and never listens. Linux then lets another
// socket with SO_REUSEPORT of the same user bind and listen on the same port. Cohort's servers do so, and gRPC's
// servers by default. A process of another user cannot bind the port, also while no task listens on it. And no process
// gets the port from a search for a free port (bind to port 0, connect without bind). See inet_csk_bind_conflict,
// inet_csk_find_open_port and __inet_hash_connect in Linux, net/ipv4. This is true while net.ipv4.ip_autobind_reuse is
// 0, its default.
#pragma once

#include <string>

#include "cohort/core/export.h"

namespace cohort {

// Not thread-safe.
class COHORT_EXPORT PortReservation {
 public:
  // Reserves a port that the system chooses. Throws UnavailableError if there is none.
  PortReservation();
  // Gives the port back. Sockets that listen on it are not closed.
  ~PortReservation();
  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;

  int port() const { return port_; }
  // Returns "127.0.0.1:port".
  std::string Address() const;

 private:
  int fd_ = -1;  // close-on-exec
  int port_ = 0;
};

// Returns a port of 127.0.0.1 that is free now, as portpicker.pick_unused_port does. Another process may take it before
// the caller does; a PortReservation prevents that. Throws what PortReservation's constructor throws.
COHORT_EXPORT int PickUnusedPort();

}  // namespace cohort
