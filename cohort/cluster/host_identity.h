// Which processes are of one host: those that can talk without a wire, and without limits of one.
#pragma once

#include <string>
#include <vector>

namespace cohort {

// Names the host of this process: the kernel's boot_id and its network namespace, "<boot id>/net:[4026531840]". Two
// processes are of one host where they share a loopback device: containers with networks of their own are hosts of
// their own, since rates are limited by network (Kubernetes and tc do so by the container's interface) and what passes
// between them goes through devices. Neither the machine's name, which containers change at will, nor addresses count.
// Machines that were resumed from one snapshot after it had booted may share a name: they then count as one host, which
// costs speed and no more.
// "" where it cannot be known: the process then counts as a host of its own. `proc`: where the kernel's files are.
std::string HostIdentity(const std::string& proc = "/proc");

// A number for each host in the order in which they first appear: the host of every process. Each "" is another one.
std::vector<int> NumberHosts(const std::vector<std::string>& identities);

}  // namespace cohort
