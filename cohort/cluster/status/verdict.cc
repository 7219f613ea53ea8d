// JudgeCluster goes through three questions: which tasks have not answered, which steps are stuck, and what else is
// worth a look. Each answer is a finding. The first line of the verdict is the finding that explains the others: a task
// that is gone, then a task that is silent, then one that says that it hangs, then a stuck step that waits for a task
// which is not stuck itself.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "cohort/cluster/status/cluster_report.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort {
namespace {

using Milliseconds = std::chrono::milliseconds;
using Answer = TaskReport::Answer;

// A finding with its place in the order: the smaller rank comes first.
struct Ranked {
  int rank = 0;
  Finding finding;
};
enum Rank { kGoneTask, kSilentTask, kHungTask, kStuckFirst, kStuckBehind, kNote };

std::string FullName(const TaskReport& report) { return StrCat("/job:", report.job, "/replica:0/task:", report.index); }

// Returns the time since any task that answers has heard of `task`, or nullopt if none knows it.
std::optional<Milliseconds> SilenceOf(const ClusterReport& report, const TaskReport& task) {
  const std::string name = FullName(task);
  std::optional<Milliseconds> least;
  for (const TaskReport& other : report.tasks) {
    for (const PeerStatus& peer : other.status.peers) {
      if (other.answered() && peer.task == name) least = least ? std::min(*least, peer.silent) : peer.silent;
    }
  }
  return least;
}

bool TrainingIsDone(const ClusterReport& report) {
  return std::ranges::any_of(report.tasks, [](const TaskReport& task) {
    return task.answered() && task.status.activity == TaskActivity::kStopping;
  });
}

std::string WhyNotAnswered(const ClusterReport& report, const TaskReport& task) {
  const std::optional<Milliseconds> silence = SilenceOf(report, task);
  if (task.answer == Answer::kRefused) return StrCat(task.Name(), " has refused the question: ", task.why_not);
  if (task.answer == Answer::kGone) {
    return StrCat(task.Name(), " is gone: no process answers at ", task.address,
                  silence ? StrCat("; the others have last heard of it ", DurationText(*silence), " ago") : "");
  }
  if (silence && *silence >= report.time_limit) {
    return StrCat(task.Name(), " has not answered for ", DurationText(*silence));
  }
  return StrCat(task.Name(), " has not answered for ", DurationText(report.time_limit),
                silence ? StrCat(", but others have heard of it ", DurationText(*silence), " ago") : "");
}

// Returns what the others wait for that `task` has to do: "; worker 0 has waited 12.0 s for it in AllReduce
// 'gradients/3'". So a task that does not answer was last known in this operation. Returns "" if nobody waits.
std::string WaitedFor(const ClusterReport& report, const TaskReport& task) {
  const std::string name = FullName(task);
  const TaskReport* waiter = nullptr;
  const StepStatus* step = nullptr;
  const WaitStatus* wait = nullptr;
  for (const TaskReport& other : report.tasks) {
    if (!other.answered()) continue;
    for (const StepStatus& running : other.status.running) {
      const auto found = std::ranges::find(running.waits, name, &WaitStatus::task);
      if (found == running.waits.end()) continue;
      if (step != nullptr && step->without_progress >= running.without_progress) continue;
      waiter = &other;
      step = &running;
      wait = &*found;
    }
  }
  if (wait == nullptr) return "";
  return StrCat("; ", waiter->Name(), " has waited ", DurationText(step->without_progress),
                wait->of_value ? StrCat(" for ", wait->what, " of it") : StrCat(" for it in ", wait->what));
}

void FindMissing(const ClusterReport& report, std::vector<Ranked>* found) {
  const bool done = TrainingIsDone(report);
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskReport& task = report.tasks[i];
    if (task.answered()) continue;
    const bool gone = task.answer == Answer::kGone;
    if (gone && done) {
      found->push_back({kNote, {i, false, StrCat(task.Name(), " has ended, and training is done")}});
    } else {
      found->push_back(
          {gone ? kGoneTask : kSilentTask, {i, true, WhyNotAnswered(report, task) + WaitedFor(report, task)}});
    }
  }
}

// A step, which may have parts on several tasks: its session and its number.
using StepId = std::pair<uint64_t, int64_t>;

// Returns the running step that has made no progress for longest, or nullptr if none is over its limit. Ignores the
// steps of `may_wait`.
const StepStatus* StuckStep(const TaskStatus& status, const VerdictLimits& limits, const std::set<StepId>& may_wait) {
  const StepStatus* stuck = nullptr;
  for (const StepStatus& step : status.running) {
    const Milliseconds limit = step.waits.empty() ? limits.computing : limits.waiting;
    if (step.without_progress < limit || may_wait.count({step.session, step.step}) > 0) continue;
    if (stuck == nullptr || step.without_progress > stuck->without_progress) stuck = &step;
  }
  return stuck;
}

std::string HangText(const TaskStatus& status) { return StrCat(ShortTaskName(status.task), " hangs: ", status.hang); }

void FindHung(const ClusterReport& report, std::vector<Ranked>* found) {
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskReport& task = report.tasks[i];
    if (!task.answered() || task.status.hang.empty()) continue;
    found->push_back({kHungTask, {i, true, HangText(task.status)}});
  }
}

std::string StuckText(const StepStatus& step) {
  const std::string time = DurationText(step.without_progress);
  if (step.waits.empty()) return StrCat("has computed for ", time, " without progress in step ", step.step);
  const WaitStatus& wait = step.waits.front();
  const size_t more = step.waits.size() - 1;
  const char* preposition = wait.of_value ? " of " : " for ";
  return StrCat("waits for ", time, wait.of_value ? " for " : " in ", wait.what,
                wait.task.empty() ? "" : StrCat(preposition, ShortTaskName(wait.task)),
                more > 0 ? StrCat(" and ", more, " more") : "");
}

void FindStuck(const ClusterReport& report, const VerdictLimits& limits, std::vector<Ranked>* found) {
  // If one part of a step waits in a queue, its parts on other tasks may have to wait for that one.
  std::set<StepId> may_wait;
  for (const TaskReport& task : report.tasks) {
    for (const StepStatus& step : task.status.running) {
      if (step.may_wait) may_wait.emplace(step.session, step.step);
    }
  }
  std::map<std::string, const StepStatus*> stuck;  // by full name
  for (const TaskReport& task : report.tasks) {
    if (!task.answered() || !task.status.hang.empty()) continue;  // FindHung has found it
    if (const StepStatus* step = StuckStep(task.status, limits, may_wait)) stuck[FullName(task)] = step;
  }
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const auto it = stuck.find(FullName(report.tasks[i]));
    if (it == stuck.end()) continue;
    const StepStatus& step = *it->second;
    const bool behind = std::ranges::any_of(
        step.waits, [&](const WaitStatus& wait) { return stuck.count(wait.task) > 0 && wait.task != it->first; });
    found->push_back(
        {behind ? kStuckBehind : kStuckFirst, {i, true, StrCat(report.tasks[i].Name(), " ", StuckText(step))}});
  }
}

void FindNotes(const ClusterReport& report, std::vector<Ranked>* found) {
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskReport& task = report.tasks[i];
    if (!task.answered()) continue;
    if (task.status.restarts > 0) {
      found->push_back({kNote,
                        {i, false,
                         StrCat(task.Name(), " was started again ", task.status.restarts,
                                task.status.restarts == 1 ? " time" : " times", "; this process is ",
                                DurationText(task.status.uptime), " old")}});
    }
    if (task.status.activity == TaskActivity::kWaitingForChief) {
      found->push_back({kNote, {i, false, task.Name() + " waits for the chief"}});
    }
  }
}

// Finds tasks that make less than half of the median's steps of their job, if at least three tasks of the job train.
// Tasks of different jobs do different work: a chief may only dispatch steps to workers, and an evaluator waits for
// checkpoints.
void FindSlow(const ClusterReport& report, std::vector<Ranked>* found) {
  const auto trains = [](const TaskReport& task) {
    return task.answered() && task.job != "ps" && task.status.activity == TaskActivity::kRunning;
  };
  std::map<std::string, std::vector<double>> rates;  // by job
  for (const TaskReport& task : report.tasks) {
    if (trains(task)) rates[task.job].push_back(task.status.steps_per_second);
  }
  std::map<std::string, double> medians;  // of jobs with three tasks or more
  for (auto& [job, of_job] : rates) {
    if (of_job.size() < 3) continue;
    const auto middle = of_job.begin() + static_cast<std::ptrdiff_t>(of_job.size() / 2);
    std::nth_element(of_job.begin(), middle, of_job.end());
    medians[job] = *middle;
  }
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskReport& task = report.tasks[i];
    const auto median = medians.find(task.job);
    if (!trains(task) || median == medians.end() || task.status.steps_per_second * 2 >= median->second) continue;
    found->push_back({kNote,
                      {i, false,
                       StrCat(task.Name(), " makes ", RateText(task.status.steps_per_second),
                              " steps/s; the median of the job ", task.job, " is ", RateText(median->second))}});
  }
}

std::string Count(size_t count, size_t of) {
  if (count == of) return of == 1 ? "the task" : StrCat("all ", of, " tasks");
  return StrCat(count, " of ", of, " tasks");
}

// Returns ", step 12 300, 8 100 steps/s", as far as the figures are known.
std::string Progress(const ClusterReport& report) {
  std::optional<int64_t> step;
  double rate = 0;
  double highest = 0;
  for (const TaskReport& task : report.tasks) {
    if (!task.answered()) continue;
    highest = std::max(highest, task.status.steps_per_second);
    if (!task.status.global_step || (step && *step >= *task.status.global_step)) continue;
    step = task.status.global_step;
    rate = task.status.global_steps_per_second;
  }
  return StrCat(step ? ", step " + GroupedNumber(*step) : "", ", ", RateText(step ? rate : highest), " steps/s");
}

std::string TextIfWell(const ClusterReport& report) {
  const size_t tasks = report.tasks.size();
  const auto count = [&](auto which) {
    return static_cast<size_t>(std::ranges::count_if(
        report.tasks, [&](const TaskReport& task) { return task.answered() && which(task.status); }));
  };
  const auto in = [](TaskActivity state) {
    return [state](const TaskStatus& status) { return status.activity == state; };
  };
  if (TrainingIsDone(report)) {
    return StrCat("training is done; ", Count(count([](const TaskStatus&) { return true; }), tasks),
                  tasks == 1 ? " still runs" : " still run");
  }
  const std::string well = StrCat(Count(tasks, tasks), tasks == 1 ? " is well" : " are well");
  if (const size_t waiting = count(in(TaskActivity::kWaitingForChief)); waiting > 0) {
    return StrCat(well, "; ", Count(waiting, tasks), waiting == 1 ? " waits" : " wait", " for the chief");
  }
  if (count(in(TaskActivity::kRunning)) == 0) return StrCat(well, "; no step runs");
  return well + Progress(report);
}

std::string TextIfUnwell(const ClusterReport& report, const std::vector<Finding>& findings) {
  const auto missing =
      static_cast<size_t>(std::ranges::count_if(report.tasks, [](const TaskReport& task) { return !task.answered(); }));
  const auto unwell =
      static_cast<size_t>(std::ranges::count_if(findings, [](const Finding& finding) { return finding.unwell; }));
  if (missing == report.tasks.size() && missing > 1) {
    return StrCat("none of the ", missing, " tasks has answered: ", findings.front().text);
  }
  std::string text = findings.front().text;
  if (unwell > 1) text += StrCat("; ", unwell - 1, unwell == 2 ? " other task is" : " other tasks are", " not well");
  return text;
}

}  // namespace

const char* TaskActivityText(TaskActivity activity) {
  switch (activity) {
    case TaskActivity::kStarting: return "starting";
    case TaskActivity::kIdle: return "idle";
    case TaskActivity::kRunning: return "running";
    case TaskActivity::kWaitingForChief: return "waiting for the chief";
    case TaskActivity::kStopping: return "stopping";
  }
  return "unknown";
}

std::string TaskReport::Name() const { return StrCat(job, " ", index); }

std::string ShortTaskName(const std::string& full_name) {
  try {
    const DeviceName name = DeviceName::Parse(full_name);
    if (name.job && name.task) return StrCat(*name.job, " ", *name.task);
  } catch (const Error&) {
    return full_name;  // a name of a kind that this program does not know
  }
  return full_name;
}

std::string GroupedNumber(int64_t number) {
  std::string text = StrCat(number);
  const size_t sign = text.starts_with('-') ? 1 : 0;
  for (size_t end = text.size(); end > sign + 3; end -= 3) text.insert(end - 3, 1, ' ');
  return text;
}

std::string RateText(double per_second) {
  if (per_second == 0) return "0";
  if (per_second >= 999.5) {
    const double unit = std::pow(10, std::floor(std::log10(per_second)) - 2);  // three digits
    return GroupedNumber(static_cast<int64_t>(std::llround(per_second / unit) * std::llround(unit)));
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(),
                per_second >= 99.5    ? "%.0f"
                : per_second >= 9.995 ? "%.1f"
                                      : "%.2f",
                per_second);
  return text.data();
}

std::string DurationText(Milliseconds time) {
  const int64_t seconds = time.count() / 1000;
  if (seconds < 100) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(time.count()) / 1000.0);
    return text.data();
  }
  if (seconds < 3600) return StrCat(seconds / 60, " min ", seconds % 60, " s");
  return StrCat(seconds / 3600, " h ", seconds % 3600 / 60, " min");
}

std::string JudgeTask(const TaskStatus& status, const VerdictLimits& limits) {
  if (!status.hang.empty()) return HangText(status);
  // A value that does not come is the fault of another task, or of nobody if that one waits in a queue.
  std::set<StepId> ignored;
  for (const StepStatus& step : status.running) {
    const bool for_value = std::ranges::any_of(step.waits, &WaitStatus::of_value);
    if (step.may_wait || for_value) ignored.emplace(step.session, step.step);
  }
  const StepStatus* step = StuckStep(status, limits, ignored);
  return step == nullptr ? "" : StrCat(ShortTaskName(status.task), " ", StuckText(*step));
}

Verdict JudgeCluster(const ClusterReport& report, const VerdictLimits& limits) {
  std::vector<Ranked> found;
  FindMissing(report, &found);
  FindHung(report, &found);
  FindStuck(report, limits, &found);
  FindNotes(report, &found);
  FindSlow(report, &found);
  std::ranges::stable_sort(found, {}, &Ranked::rank);
  Verdict verdict;
  for (Ranked& ranked : found) verdict.findings.push_back(std::move(ranked.finding));
  verdict.well = std::ranges::none_of(verdict.findings, [](const Finding& finding) { return finding.unwell; });
  verdict.text = verdict.well ? TextIfWell(report) : TextIfUnwell(report, verdict.findings);
  return verdict;
}

}  // namespace cohort
