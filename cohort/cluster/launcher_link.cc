#include "cohort/cluster/launcher_link.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

#include "cohort/core/process/hung_thread.h"

namespace cohort {
namespace {

// -1: there is no link. Never closed, so that the launcher sees its end when this process ends.
std::atomic<int> link_to_launcher{-1};

// Connects to the abstract socket `name`. Returns -1 if that fails.
int ConnectToLauncher(std::string_view name) {
  sockaddr_un address{};
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) return -1;
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // the first byte, 0, makes it abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  close(fd);
  return -1;
}

void AnswerQuestions(int fd) {
  char question = 0;
  while (true) {
    const ssize_t count = recv(fd, &question, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the launcher has ended
    // A process that cannot end by itself any more wants to be ended.
    if (question == kHealthQuestion && !HungThread::Any()) send(fd, &kHealthAnswer, 1, MSG_NOSIGNAL);
  }
}

}  // namespace

void AnswerLauncher() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* name = std::getenv("COHORT_HEALTH");
    const int fd = name == nullptr ? -1 : ConnectToLauncher(name);
    if (fd < 0) return;
    link_to_launcher = fd;
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([fd] { AnswerQuestions(fd); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  });
}

bool HasLauncher() { return link_to_launcher >= 0; }

void TellLauncherTrainingDone() {
  if (const int fd = link_to_launcher.load(); fd >= 0) send(fd, &kTrainingDone, 1, MSG_NOSIGNAL);
}

}  // namespace cohort
