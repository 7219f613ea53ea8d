// What strangers do to the port of a task: the ways of a flood. A stranger has no token, and with TLS no certificate of
// the job.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace cohort::testing {

// How many connections some attacks keep open. A process may have 1,024 descriptors as a rule.
inline constexpr int kIdle = 1200;

// What a stranger does on a connection that it has just opened. Several threads may call it at the same time.
using Talk = std::function<void(int fd)>;

struct Attack {
  std::string name;
  std::function<Talk()> make;  // called once, before the flood
  int held = 0;                // how many connections stay open until the end; 0: each is closed at once
  bool tls = false;            // the tasks have certificates
  int threads = 1;             // for each address; so many connections are tried at the same time
  int pause_ms = 1;            // between two steps of the training
};

std::ostream& operator<<(std::ostream& out, const Attack& attack);

// Returns all attacks. Each has a name of its own.
std::vector<Attack> AllAttacks();

}  // namespace cohort::testing
