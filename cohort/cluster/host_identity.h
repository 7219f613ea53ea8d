// Host identities: which processes are on one host. Such processes need no network to exchange data.
#pragma once

#include <string>
#include <vector>

namespace cohort {

// Returns a name for the host of this process: the kernel's boot_id and the network namespace, such as "<boot
// id>/net:[4026531840]". Returns "" if it cannot be known; such a process counts as a host of its own. `proc` is the
// folder with the kernel's files.
//
// Two processes are on one host if they share a loopback device. A container with a network of its own is a host of its
// own, because its data pass through network devices, and rates are limited there. The machine's name and its addresses
// do not count. If several machines were resumed from one snapshot, they may have the same name. Then they count as one
// host, which makes them slower and does no other harm.
std::string HostIdentity(const std::string& proc = "/proc");

// Returns the number of each process's host. Hosts are numbered in the order in which they first appear. Each "" is a
// host of its own.
std::vector<int> NumberHosts(const std::vector<std::string>& identities);

}  // namespace cohort
