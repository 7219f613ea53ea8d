// Checks addresses to listen on and to connect to. The check asks the system before gRPC does, so that errors name the
// cause.
#pragma once

#include "cohort/cluster/cluster_spec.h"

namespace cohort {

// Throws InvalidArgumentError if the host does not resolve or is not an address of this machine (the message mentions
// --bind), UnavailableError if the port is in use, and PermissionDeniedError if the address is not a loopback address
// and `allow_insecure` is false.
void CheckListenAddress(const HostPort& address, bool allow_insecure);

// Throws UnavailableError if the host does not resolve (it may resolve later), and PermissionDeniedError if the address
// is not a loopback address and `allow_insecure` is false.
void CheckDialAddress(const HostPort& address, bool allow_insecure);

}  // namespace cohort
