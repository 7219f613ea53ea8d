// Checks addresses to listen on and to connect to. The check asks the system before gRPC does, so that errors name the
// cause.
#pragma once

#include "cohort/cluster/cluster_spec.h"

namespace cohort {

// Returns whether the environment allows connections without TLS to other hosts: COHORT_ALLOW_INSECURE is "1" or
// "true". Throws InvalidArgumentError unless the variable is that, "0", "false", empty or not set.
bool EnvironmentAllowsInsecure();

// Throws InvalidArgumentError if the host does not resolve or is not an address of this machine (the message mentions
// --bind), UnavailableError if the port is in use, and PermissionDeniedError if the address is not a loopback address
// and neither `allow_insecure` nor the environment allows it. Throws what EnvironmentAllowsInsecure throws.
void CheckListenAddress(const HostPort& address, bool allow_insecure);

// Throws UnavailableError if the host does not resolve (it may resolve later), and PermissionDeniedError if the address
// is not a loopback address and neither `allow_insecure` nor the environment allows it. Throws what
// EnvironmentAllowsInsecure throws.
void CheckDialAddress(const HostPort& address, bool allow_insecure);

}  // namespace cohort
