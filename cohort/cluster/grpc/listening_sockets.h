// Asks the system which sockets listen.
#pragma once

#include "cohort/cluster/local_address.h"

namespace cohort {

// Returns how many sockets of this network, of all processes, listen on the port of `address` and would get connections
// to it: at its host or at a wildcard address. If the host is a wildcard address, all hosts count. Returns 0, with a
// warning, if the system does not answer.
int CountListening(const SocketAddress& address);

}  // namespace cohort
