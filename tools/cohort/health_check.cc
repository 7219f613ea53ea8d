#include "tools/cohort/health_check.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cohort/cluster/launcher_link.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "tools/cohort/launch_layout.h"

namespace cohort::tools {
namespace {

constexpr int kMostWaiting = 128;  // connections that are not accepted yet
constexpr std::chrono::seconds kAcceptPause{1};
constexpr char kTraced = 't';  // the state of a process that its debugger has stopped

// Returns the state of a process, as /proc shows it, or '?'. Its name, in parentheses, may have spaces.
char StateOf(pid_t pid) {
  std::string text;
  std::getline(std::ifstream(StrCat("/proc/", pid, "/stat")), text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
}

std::string DescribeSilence(pid_t pid, std::chrono::duration<double> silence) {
  const std::string how = HealthCheck::IsStopped(pid) ? "is stopped (state T) and " : "";
  return StrCat("(pid ", pid, ") ", how, "has not answered the launcher for ", OneDecimal(silence));
}

int ListenOn(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // the first byte, 0, makes it abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0 && listen(fd, kMostWaiting) == 0) {
    return fd;
  }
  const std::string why = std::strerror(errno);
  if (fd >= 0) close(fd);
  throw UnavailableError(StrCat("[launch] expected a socket for the health of the tasks; got: ", why,
                                "; --unhealthy_after=0 does without it"));
}

}  // namespace

HealthCheck::HealthCheck(Seconds limit) : interval_(std::min(Seconds(1), limit / 5)) {
  if (limit.count() <= 0) return;
  name_ = "cohort-launch-" + NewToken();
  listener_ = ListenOn(name_);
}

HealthCheck::~HealthCheck() {
  for (const Link& link : links_) close(link.fd);
  if (listener_ >= 0) close(listener_);
}

void HealthCheck::AddPollEntries(std::vector<pollfd>* entries) const {
  if (listener_ >= 0 && !accept_at_) entries->push_back({listener_, POLLIN, 0});
  for (const Link& link : links_) entries->push_back({link.fd, POLLIN, 0});
}

HealthCheck::Clock::time_point HealthCheck::next_update() const {
  const Clock::time_point ask = last_ + std::chrono::duration_cast<Clock::duration>(interval_);
  return std::min(links_.empty() ? Clock::time_point::max() : ask, accept_at_.value_or(Clock::time_point::max()));
}

void HealthCheck::Accept(const std::function<std::optional<size_t>(pid_t group)>& task_of) {
  if (listener_ < 0 || (accept_at_ && Clock::now() < *accept_at_)) return;
  accept_at_.reset();
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      if (errno == EAGAIN) return;
      // There are no descriptors (EMFILE). The listener stays readable, so waiting for it would not wait.
      accept_at_ = Clock::now() + kAcceptPause;
      return;
    }
    ucred peer{};
    socklen_t size = sizeof(peer);
    std::optional<size_t> task;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0) task = task_of(getpgid(peer.pid));
    if (task) {
      links_.push_back({.fd = fd, .task = *task, .pid = peer.pid});
      knows_any_ = true;
    } else {
      close(fd);
    }
  }
}

bool HealthCheck::Read(Link* link) {
  char message = 0;
  while (true) {
    const ssize_t count = recv(link->fd, &message, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    if (message == kTrainingDone) done_.insert(link->task);
    if (message != kHealthAnswer) continue;
    if (link->told) link->was_silent = link->silence;
    link->told = false;
    link->asked = false;
    link->silence = Seconds(0);
  }
}

void HealthCheck::Update(const std::function<std::optional<size_t>(pid_t group)>& task_of) {
  Accept(task_of);
  for (Link& link : links_) {
    if (Read(&link)) continue;
    close(link.fd);
    link.fd = -1;
  }
  std::erase_if(links_, [](const Link& link) { return link.fd < 0; });
  const Clock::time_point now = Clock::now();
  if (now < last_ + std::chrono::duration_cast<Clock::duration>(interval_)) return;
  // If this process, or the whole machine, has been stopped for a while, the tasks may not have had the time to answer.
  const Seconds passed = std::min<Seconds>(now - last_, 2 * interval_);
  last_ = now;
  for (Link& link : links_) {
    if (link.asked) {
      if (StateOf(link.pid) != kTraced) link.silence += passed;
    } else {
      link.asked = send(link.fd, &kHealthQuestion, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    }
  }
}

bool HealthCheck::IsSilent(const Link& link, Seconds limit) const {
  // One late answer is no sign of anything.
  return link.asked && link.silence >= std::max(limit, 3 * interval_) && StateOf(link.pid) != kTraced;
}

std::vector<HealthCheck::Report> HealthCheck::SilentFor(Seconds limit) const {
  std::vector<Report> silent;
  for (const Link& link : links_) {
    if (IsSilent(link, limit)) silent.push_back({link.task, DescribeSilence(link.pid, link.silence)});
  }
  return silent;
}

std::vector<HealthCheck::Report> HealthCheck::TakeNews() {
  std::vector<Report> news;
  for (Link& link : links_) {
    if (link.was_silent.count() > 0) {
      news.push_back({link.task, StrCat("(pid ", link.pid, ") answers again after ", OneDecimal(link.was_silent))});
      link.was_silent = Seconds(0);
    }
    if (link.told || !IsSilent(link, Seconds(0))) continue;
    link.told = true;
    news.push_back({link.task, DescribeSilence(link.pid, link.silence)});
  }
  return news;
}

bool HealthCheck::knows(size_t task) const {
  return std::ranges::any_of(links_, [task](const Link& link) { return link.task == task; });
}

bool HealthCheck::IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

void HealthCheck::Forget(size_t task) {
  for (const Link& link : links_) {
    if (link.task == task) close(link.fd);
  }
  std::erase_if(links_, [task](const Link& link) { return link.task == task; });
}

}  // namespace cohort::tools
