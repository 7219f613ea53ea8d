#include "tests/chaos/process_cluster.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "cohort/cluster/tf_config.h"
#include "cohort/core/str_cat.h"
#include "tests/chaos/counting_model.h"

namespace cohort::testing {
namespace {

std::vector<std::string> LinesWith(const std::string& text, const std::string& start) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(start, 0) == 0) lines.push_back(line);
  }
  return lines;
}

}  // namespace

ProcessCluster::ProcessCluster(const std::map<std::string, int>& jobs, Arguments program)
    : program_(std::move(program)) {
  std::map<std::string, std::vector<std::string>> addresses;
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) addresses[job].push_back(ports_[{job, i}].Address());
  }
  spec_ = ClusterSpec(addresses);
}

ProcessCluster::~ProcessCluster() = default;

Arguments ProcessCluster::ChaosTask() { return {CHAOS_TASK}; }

std::string ProcessCluster::FullName(const std::string& job, int index) {
  return StrCat("/job:", job, "/replica:0/task:", index);
}

std::string ProcessCluster::TFConfig(const std::string& job, int index) const {
  std::string json = ClusterToJson(spec_);
  json.pop_back();  // its closing brace
  return StrCat(json, ",\"task\":{\"type\":\"", job, "\",\"index\":", index, "}}");
}

void ProcessCluster::Advertise(const std::string& job, int index, const std::string& address) {
  std::map<std::string, ClusterSpec::Tasks> jobs(spec_.as_map().begin(), spec_.as_map().end());
  jobs.at(job).at(index) = address;
  spec_ = ClusterSpec::FromSparse(std::move(jobs));
}

LaunchedProgram& ProcessCluster::Start(const std::string& job, int index, const Arguments& more,
                                       const Surroundings& surroundings) {
  Arguments command{"/usr/bin/env", "TF_CONFIG=" + TFConfig(job, index)};
  command.insert(command.end(), surroundings.environment.begin(), surroundings.environment.end());
  command.insert(command.end(), program_.begin(), program_.end());
  command.insert(command.end(), more.begin(), more.end());
  auto& task = tasks_[{job, index}];
  task.reset();
  task = std::make_unique<LaunchedProgram>(command, [&surroundings] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (surroundings.in_child) surroundings.in_child();
  });
  return *task;
}

void ProcessCluster::StartAll(const Arguments& more) {
  for (const auto& [key, port] : ports_) {
    if (tasks_.count(key) == 0) Start(key.first, key.second, more);
  }
}

void ProcessCluster::Kill(const std::string& job, int index) {
  task(job, index).Signal(SIGKILL);
  task(job, index).Wait();
}

void ProcessCluster::Freeze(const std::string& job, int index) {
  task(job, index).Signal(SIGSTOP);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(task(job, index).pid()), &info, WSTOPPED | WEXITED | WNOWAIT);
}

void ProcessCluster::Thaw(const std::string& job, int index) { task(job, index).Signal(SIGCONT); }

bool ProcessCluster::WaitForLines(const std::string& job, int index, const std::string& start, int times) {
  return task(job, index).WaitForText("\n" + start, times);
}

int ProcessCluster::CountLines(const std::string& job, int index, const std::string& start) {
  return static_cast<int>(LinesWith(task(job, index).out(), start).size());
}

std::string ProcessCluster::LastLine(const std::string& job, int index, const std::string& start) {
  const std::vector<std::string> lines = LinesWith(task(job, index).out(), start);
  return lines.empty() ? "" : lines.back();
}

std::string ProcessCluster::Describe() {
  std::string text;
  for (const auto& [key, task] : tasks_) {
    std::string out = task->out();
    constexpr size_t kShown = 1500;
    if (out.size() > kShown) out = "[...]" + out.substr(out.size() - kShown);
    text += StrCat("---- ", key.first, "/", key.second, "\n", out, task->err());
  }
  return text;
}

ModelState ReadModel(const ClusterSpec& spec, int variables, int64_t size) {
  const CountingModel model(spec, 0, variables, size);
  std::vector<Output> fetches{model.global_step.value()};
  for (const ops::Variable& weight : model.weights) fetches.push_back(weight.value());
  Session session(model.graph, "grpc://" + spec.task_address("ps", 0));
  const std::vector<Tensor> values = session.Run(fetches);
  ModelState state;
  state.global_step = values[0].scalar<int64_t>();
  for (size_t i = 1; i < values.size(); ++i) state.applied.push_back(CountingModel::Applied(values[i]));
  return state;
}

void UseTestToken() { setenv("COHORT_TOKEN", "the token of the chaos tests", 1); }

}  // namespace cohort::testing
