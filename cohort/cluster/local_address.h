// What may be listened on and dialed, checked with the system before gRPC is asked, so that errors name the cause.
#pragma once

#include "cohort/cluster/cluster_spec.h"

namespace cohort {

// Throws InvalidArgumentError for a host that does not resolve or is not an address of this machine (and names --bind),
// UnavailableError for a port in use, PermissionDeniedError for an address off loopback unless `allow_insecure`.
void CheckListenAddress(const HostPort& address, bool allow_insecure);

// Throws UnavailableError for a host that does not resolve (it may do so later), PermissionDeniedError for an address
// off loopback unless `allow_insecure`.
void CheckDialAddress(const HostPort& address, bool allow_insecure);

}  // namespace cohort
