#include "tests/chaos/strangers/attacker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/grpc/socket.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in OnLoopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Descriptor ConnectTo(const std::string& where) {
  const sockaddr_in address = OnLoopback(ParseAddress(where).port);
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // of connect and send
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return Descriptor();
  return fd;
}

// Returns the processor time of the calling thread.
int64_t ProcessorNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// OpenSSL writes to sockets that the task may have closed.
void BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace

Attacker::Attacker(const Attack& attack, const std::vector<std::string>& addresses)
    : talk_(attack.make()), held_(static_cast<size_t>(attack.held)) {
  for (const std::string& address : addresses) {
    for (int i = 0; i < attack.threads; ++i) threads_.emplace_back([this, address] { Run(address); });
  }
}

Attacker::~Attacker() {
  end_ = true;
  for (std::thread& thread : threads_) thread.join();
}

Work Attacker::work() const {
  return {connections_, 1e-9 * static_cast<double>(processor_ns_),
          std::chrono::duration<double>(Clock::now() - start_).count()};
}

void Attacker::Run(const std::string& address) {
  BlockSigpipe();
  std::vector<Descriptor> held;
  int64_t counted = ProcessorNs();
  while (!end_) {
    Descriptor fd = ConnectTo(address);
    if (fd.get() >= 0) {
      ++connections_;
      talk_(fd.get());
    }
    const int64_t now = ProcessorNs();
    processor_ns_ += now - std::exchange(counted, now);
    if (held_ == 0) continue;
    if (fd.get() >= 0) held.push_back(std::move(fd));
    if (held.size() < held_) continue;
    held.erase(held.begin());                                   // the task may have closed it
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // sets the rate of the attack; it waits for nothing
  }
}

Imitator::Imitator(const Work& work, int threads) {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = OnLoopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), 256) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw UnavailableError("[test] no port for the imitation of a flood");
  }
  address_ = StrCat("127.0.0.1:", ntohs(address.sin_port));
  pid_ = fork();
  if (pid_ == 0) {  // other threads hold locks of the parent: only calls of the system from here on
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) close(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  const double connections = static_cast<double>(std::max<int64_t>(work.connections, 1));
  const std::chrono::duration<double> interval(threads * work.seconds / connections);
  const auto processor_ns = static_cast<int64_t>(1e9 * work.processor_seconds / connections);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back(
        [=, this] { Run(std::chrono::duration_cast<std::chrono::nanoseconds>(interval), processor_ns); });
  }
}

Imitator::~Imitator() {
  end_ = true;
  for (std::thread& thread : threads_) thread.join();
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Imitator::Run(std::chrono::nanoseconds interval, int64_t processor_ns) {
  const auto longest = std::chrono::milliseconds(100);  // so that the end is soon, and the work in equal parts
  const int64_t parts = interval / longest + 1;
  int64_t count = 0;
  for (Clock::time_point next = Clock::now(); !end_; ++count) {
    const int64_t enough = ProcessorNs() + processor_ns / parts;
    if (count % parts == 0) ConnectTo(address_);
    while (ProcessorNs() < enough) {
    }
    next = std::max(next + interval / parts, Clock::now());
    std::this_thread::sleep_until(next);  // sets the rate; it waits for nothing
  }
}

}  // namespace cohort::testing
