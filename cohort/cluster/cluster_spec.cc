// Checks, looks up and prints the tasks of a cluster. The text form is that of TensorFlow's ClusterSpec in Python.
#include "cohort/cluster/cluster_spec.h"

#include <cctype>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

void CheckJobName(const std::string& job) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  bool good = !job.empty() && letter(job[0]);
  for (const char c : job) good = good && (letter(c) || (c >= '0' && c <= '9') || c == '_');
  if (!good) {
    throw InvalidArgumentError(StrCat(
        "[ClusterSpec] expected a job name that is a letter followed by letters, digits or '_'; got \"", job, "\""));
  }
}

void CheckTasks(const std::string& job, const ClusterSpec::Tasks& tasks) {
  for (const auto& [index, address] : tasks) {
    if (index < 0 || index > ClusterSpec::kMaxTaskIndex) {
      throw InvalidArgumentError(StrCat("[ClusterSpec] expected task indices from 0 to ", ClusterSpec::kMaxTaskIndex,
                                        "; got ", index, " in job '", job, "'"));
    }
    try {
      ParseAddress(address);
    } catch (const InvalidArgumentError& e) {
      throw InvalidArgumentError(StrCat(e.what(), "; in ", TaskName(job, index)));
    }
  }
}

bool IsDense(const ClusterSpec::Tasks& tasks) {
  return !tasks.empty() && tasks.rbegin()->first + 1 == static_cast<int>(tasks.size());
}

// Prints a text as Python's repr does for printable ASCII: in double quotes only if the text has single quotes and no
// double quotes.
std::string PythonRepr(const std::string& text) {
  const bool single = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = single ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    out += c;
  }
  return out + quote;
}

std::string TasksText(const ClusterSpec::Tasks& tasks) {
  const bool dense = IsDense(tasks);
  std::string out(1, dense ? '[' : '{');
  const char* between = "";
  for (const auto& [index, address] : tasks) {
    out += between;
    if (!dense) out += StrCat(index, ": ");
    out += PythonRepr(address);
    between = ", ";
  }
  return out + (dense ? ']' : '}');
}

}  // namespace

ClusterSpec::ClusterSpec(const std::map<std::string, std::vector<std::string>>& jobs) {
  std::map<std::string, Tasks> sparse;
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = sparse[job];
    for (size_t i = 0; i < addresses.size(); ++i) tasks.emplace(static_cast<int>(i), addresses[i]);
  }
  *this = FromSparse(std::move(sparse));
}

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, std::vector<std::string>>> jobs)
    : ClusterSpec(std::map<std::string, std::vector<std::string>>(jobs)) {}

ClusterSpec ClusterSpec::FromSparse(std::map<std::string, Tasks> jobs) {
  ClusterSpec cluster;
  for (auto& [job, tasks] : jobs) {
    CheckJobName(job);
    CheckTasks(job, tasks);
    cluster.jobs_.emplace(job, std::move(tasks));
  }
  return cluster;
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

const ClusterSpec::Tasks& ClusterSpec::Job(std::string_view job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    throw NotFoundError(StrCat("[ClusterSpec] No such job in cluster: '", job, "'; the cluster has ",
                               jobs_.empty() ? "no jobs" : StrJoin(jobs(), ", ")));
  }
  return found->second;
}

int ClusterSpec::num_tasks(std::string_view job) const { return static_cast<int>(Job(job).size()); }

std::vector<int> ClusterSpec::task_indices(std::string_view job) const {
  std::vector<int> indices;
  for (const auto& [index, address] : Job(job)) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(std::string_view job, int index) const {
  const Tasks& tasks = Job(job);
  const auto found = tasks.find(index);
  if (found == tasks.end()) {
    throw NotFoundError(StrCat("[ClusterSpec] No task with index ", index, " in job '", job, "'; it has ",
                               tasks.empty() ? "no tasks" : "indices " + StrJoin(task_indices(job), ", ")));
  }
  return found->second;
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(std::string_view job) const {
  const Tasks& tasks = Job(job);
  std::vector<std::optional<std::string>> list;
  for (const auto& [index, address] : tasks) {
    list.resize(static_cast<size_t>(index) + 1);
    list.back() = address;
  }
  return list;
}

bool ClusterSpec::has_task(std::string_view job, int index) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && found->second.count(index) != 0;
}

std::vector<std::pair<std::string, int>> ClusterSpec::tasks() const {
  std::vector<std::pair<std::string, int>> all;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) all.emplace_back(job, index);
  }
  return all;
}

int ClusterSpec::total_tasks() const {
  int total = 0;
  for (const auto& [job, tasks] : jobs_) total += static_cast<int>(tasks.size());
  return total;
}

std::string ClusterSpec::ToString() const {
  std::string out = "ClusterSpec({";
  const char* between = "";
  for (const auto& [job, tasks] : jobs_) {
    out += StrCat(between, PythonRepr(job), ": ", TasksText(tasks));
    between = ", ";
  }
  return out + "})";
}

std::ostream& operator<<(std::ostream& out, const ClusterSpec& cluster) { return out << cluster.ToString(); }

std::string TaskName(std::string_view job, int index) { return StrCat("/job:", job, "/task:", index); }

}  // namespace cohort
