#include "tools/cohort/launch_layout.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::tools {

std::string TaskId::Name() const { return StrCat(job, "/", index); }
std::string TaskId::FileName() const { return StrCat(job, "-", index, ".log"); }

std::vector<TaskId> TasksOf(const JobCounts& counts) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < counts.ps; ++i) tasks.push_back({"ps", i});
  for (int i = 0; i < counts.chief; ++i) tasks.push_back({"chief", i});
  for (int i = 0; i < counts.workers; ++i) tasks.push_back({"worker", i});
  for (int i = 0; i < counts.evaluator; ++i) tasks.push_back({"evaluator", i});
  return tasks;
}

std::string TFConfigText(const std::vector<TaskId>& tasks, const std::vector<std::string>& addresses, size_t which) {
  nlohmann::ordered_json config;
  config["cluster"] = nlohmann::ordered_json::object();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].InCluster()) config["cluster"][tasks[i].job].push_back(addresses[i]);
  }
  config["task"]["type"] = tasks[which].job;
  config["task"]["index"] = tasks[which].index;
  return config.dump();
}

Environment CurrentEnvironment() {
  Environment current;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    current.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return current;
}

void SetThreads(const TaskId& task, const CoreDivision& division, bool threads_are_fixed, Environment* current) {
  const std::string threads = std::to_string(task.IsPs() ? division.threads_per_ps : division.threads_per_task);
  if (threads_are_fixed) {
    (*current)["OMP_NUM_THREADS"] = threads;
  } else {
    current->emplace("OMP_NUM_THREADS", threads);
  }
  // If the user has set a policy, nothing is set here, because GOMP_SPINCOUNT would override the policy.
  if (!division.shared_cores || current->count("OMP_WAIT_POLICY") > 0) return;
  (*current)["OMP_WAIT_POLICY"] = "passive";
  current->emplace("GOMP_SPINCOUNT", "1000");
}

std::string NewToken() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    throw UnavailableError(StrCat("[launch] expected random bytes for COHORT_TOKEN; getrandom failed: ",
                                  std::strerror(errno), "; set COHORT_TOKEN yourself"));
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

void SetToken(const std::string& token, Environment* current) {
  if (current->count("COHORT_TOKEN_FILE") == 0) current->emplace("COHORT_TOKEN", token);
}

void SetRunId(const std::string& id, Environment* current) { current->emplace("COHORT_RUN_ID", id); }

void SetStopGrace(std::chrono::duration<double> grace, Environment* current) {
  current->emplace("COHORT_STOP_GRACE", StrCat(std::max(1, static_cast<int>(std::ceil(grace.count())))));
}

void SetLineBuffering(Environment* current) { current->emplace("COHORT_LINE_BUFFERED", "1"); }

void SetSeconds(const std::string& variable, const std::optional<double>& seconds, Environment* current) {
  if (seconds) (*current)[variable] = StrCat(*seconds);
}

std::string OneDecimal(std::chrono::duration<double> time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", time.count());
  return text;
}

void SetProgressBars(Environment* current) { current->emplace("COHORT_PROGRESS", "bar"); }

}  // namespace cohort::tools
