// A task for launch_test. Its first argument names what it does; Run() has the list. The exit code is 0 if all went as
// it should.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

struct Self {
  ClusterSpec cluster;
  std::string job;
  int index;
  HostPort address;
};

Self WhoAmI() {
  const TFConfigClusterResolver resolver;
  Self self{resolver.cluster_spec(), resolver.task_type().value(), resolver.task_id().value(), {}};
  self.address = ParseAddress(self.cluster.task_address(self.job, self.index));
  return self;
}

sockaddr_in SocketAddress(const HostPort& at) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(at.port));
  inet_pton(AF_INET, at.host.c_str(), &address.sin_addr);
  return address;
}

[[noreturn]] void Fail(const std::string& what) {
  throw InternalError(StrCat(what, " failed: ", std::strerror(errno)));
}

int Listen(const HostPort& at) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));  // the launcher keeps the port for this user
  const sockaddr_in address = SocketAddress(at);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) Fail("bind");
  if (listen(fd, 16) != 0) Fail("listen");
  return fd;
}

// Tries to connect until the peer listens.
int Connect(const HostPort& at) {
  const sockaddr_in address = SocketAddress(at);
  const auto deadline = Clock::now() + std::chrono::seconds(120);
  while (Clock::now() < deadline) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    if (errno != ECONNREFUSED) Fail("connect");
    close(fd);
    poll(nullptr, 0, 20);
  }
  Fail("connecting in time");
}

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[256];
  for (ssize_t count; (count = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(count));
  close(fd);
  return text;
}

std::string Greeting(const std::string& from, const std::string& to) {
  return StrCat(std::getenv("COHORT_TOKEN"), " ", from, " -> ", to);
}

// Listens, greets the next task of the cluster, and checks the greeting of the one before.
int Ring() {
  const Self self = WhoAmI();
  std::vector<std::string> names, addresses;
  size_t own = 0;
  for (const auto& [job, tasks] : self.cluster.as_map()) {
    for (const auto& [index, address] : tasks) {
      if (job == self.job && index == self.index) own = names.size();
      names.push_back(TaskName(job, index));
      addresses.push_back(address);
    }
  }
  const size_t count = names.size(), next = (own + 1) % count, before = (own + count - 1) % count;
  const int server = Listen(self.address);
  const int out = Connect(ParseAddress(addresses[next]));
  const std::string greeting = Greeting(names[own], names[next]);
  if (write(out, greeting.data(), greeting.size()) != static_cast<ssize_t>(greeting.size())) Fail("write");
  close(out);
  const std::string heard = ReadToEnd(accept(server, nullptr, nullptr));
  if (heard == Greeting(names[before], names[own])) return 0;
  std::fprintf(stderr, "%s heard \"%s\"\n", names[own].c_str(), heard.c_str());
  return 1;
}

// Runs on ps/0. It tells one connection how many times it was started, and closes the connection first (so that
// TIME_WAIT stays on the port). It fails when it runs for the first time, which the file records. The worker reads both
// messages.
int Reborn(const std::string& life_file) {
  const Self self = WhoAmI();
  if (self.job == "worker") {
    for (const char* life : {"first", "second"}) {
      while (ReadToEnd(Connect(ParseAddress(self.cluster.task_address("ps", 0)))) != life) {
      }
    }
    return 0;
  }
  const bool first = access(life_file.c_str(), F_OK) != 0;
  const std::string life = first ? "first" : "second";
  const int server = Listen(self.address);
  const int connection = accept(server, nullptr, nullptr);
  if (write(connection, life.data(), life.size()) < 0) Fail("write");
  shutdown(connection, SHUT_RDWR);
  close(connection);
  close(server);
  if (!first) return 0;
  std::fclose(std::fopen(life_file.c_str(), "w"));
  return 7;
}

// Prints each open descriptor above 2.
int Descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > 2 && fd != dirfd(folder)) std::printf("open: %d\n", fd);
  }
  closedir(folder);
  return 0;
}

// Prints the signal mask and the actions with which this process was started.
int Signals() {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action;
    if (sigismember(&mask, signal) == 1) std::printf("blocked: %d\n", signal);
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) std::printf("handled: %d\n", signal);
  }
  return 0;
}

// Prints ten thousand lines of the task's own letter, then a NUL and a line without newline.
int Chatter() {
  const Self self = WhoAmI();
  for (int i = 0; i < 10000; ++i) {
    std::printf("%s\n", std::string(static_cast<size_t>(i % 150), static_cast<char>('a' + self.index)).c_str());
  }
  std::fwrite("nul\0end", 1, 7, stdout);
  return 0;
}

int Run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (what == "ring") return Ring();
  if (what == "reborn") return Reborn(arguments.at(1));
  if (what == "descriptors") return Descriptors();
  if (what == "signals") return Signals();
  if (what == "chatter") return Chatter();
  std::fprintf(stderr, "launched_task: unknown argument \"%s\"\n", what.c_str());
  return 99;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  try {
    return cohort::Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "launched_task: %s\n", e.what());
    return 98;
  }
}
