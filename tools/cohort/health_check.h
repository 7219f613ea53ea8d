// HealthCheck: the launcher's questions to its tasks whether they are well.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cohort::tools {

// Listens on a socket whose name the tasks get in COHORT_HEALTH. The first Server of a process connects to it and then
// answers each question from a thread of its own (cohort/cluster/launcher_link.h). A process that is stopped does not
// answer. One without a Server never connects, and is not judged. Used by the launcher's thread, which must not block
// here: no call waits.
class HealthCheck {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  // `limit` is the silence after which a task is unwell; 0: asks nobody. Throws UnavailableError if there is no socket.
  explicit HealthCheck(Seconds limit);
  ~HealthCheck();
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  // Returns the value of COHORT_HEALTH, or "" if nobody is asked.
  const std::string& name() const { return name_; }
  void AddPollEntries(std::vector<pollfd>* entries) const;
  // Returns when Update has to be called at the latest.
  Clock::time_point next_update() const;
  // Accepts connections, reads the answers, and asks again. `task_of` returns the task that leads a process group, or
  // nullopt; a process that belongs to no task gets no connection.
  void Update(const std::function<std::optional<size_t>(pid_t group)>& task_of);

  struct Report {
    size_t task;
    std::string what;  // "(pid 12) is stopped (state T) and has not answered the launcher for 30.0 s"
  };
  // Returns the tasks that have connected and have not answered a question for `limit`. A process that a debugger has
  // stopped is not counted, because its user looks at it; the time until it goes on does not count either.
  std::vector<Report> SilentFor(Seconds limit) const;
  // Returns the tasks that have been silent for three intervals, and those that answer again, each once.
  std::vector<Report> TakeNews();
  // Returns whether a process of the task is connected, and whether one of any task has ever been.
  bool knows(size_t task) const;
  bool knows_any() const { return knows_any_; }
  // Returns whether a process is stopped, such as by SIGSTOP; false for one that a debugger has stopped.
  static bool IsStopped(pid_t pid);
  // Returns whether a process of the task has said that training is done.
  bool training_done(size_t task) const { return done_.count(task) > 0; }
  // Forgets what it knows about the task, which has ended or will be killed.
  void Forget(size_t task);
  // Before the task is started again: it has not said that training is done.
  void Renew(size_t task) { done_.erase(task); }

 private:
  struct Link {
    int fd;
    size_t task;
    pid_t pid;
    bool asked = false;     // a question is not answered
    Seconds silence{0};     // since that question
    bool told = false;      // TakeNews has returned that it is silent
    Seconds was_silent{0};  // the silence that an answer has ended, until TakeNews has returned it
  };
  bool IsSilent(const Link& link, Seconds limit) const;
  void Accept(const std::function<std::optional<size_t>(pid_t group)>& task_of);
  // Reads what the task has sent. Returns false if it has closed the link.
  bool Read(Link* link);

  const Seconds interval_;  // between questions
  std::string name_;
  int listener_ = -1;
  // If this process has no descriptors left: when to accept connections again. They wait in the queue of the socket.
  std::optional<Clock::time_point> accept_at_;
  std::vector<Link> links_;
  std::set<size_t> done_;
  bool knows_any_ = false;
  Clock::time_point last_ = Clock::now();  // when the questions were asked last
};

}  // namespace cohort::tools
