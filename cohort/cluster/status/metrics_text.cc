#include "cohort/cluster/status/metrics_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"

namespace cohort {
namespace {

std::string EscapedLabel(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

double InSeconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000.0; }

// Writes the page. Its functions add one figure each.
class MetricsPage {
 public:
  explicit MetricsPage(const std::string& full_name) {
    const DeviceName name = DeviceName::Parse(full_name);
    labels_ = StrCat("job=\"", EscapedLabel(name.job.value_or("")), "\",task=\"", name.task.value_or(0), "\"");
  }

  void Gauge(const char* name, const char* help, double value) {
    Begin(name, "gauge", help);
    Sample(name, "", ShortestText(value));
  }
  void Gauge(const char* name, const char* help, uint64_t value) {
    Begin(name, "gauge", help);
    Sample(name, "", StrCat(value));
  }
  void Counter(const char* name, const char* help, uint64_t value) {
    Begin(name, "counter", help);
    Sample(name, "", StrCat(value));
  }
  // One sample for each value of the label.
  void Gauges(const char* name, const char* help, const char* label,
              const std::vector<std::pair<std::string, double>>& values) {
    Begin(name, "gauge", help);
    for (const auto& [text, value] : values) {
      Sample(name, StrCat(",", label, "=\"", EscapedLabel(text), "\""), ShortestText(value));
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  void Begin(const char* name, const char* type, const char* help) {
    text_ += StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void Sample(const char* name, const std::string& more_labels, const std::string& value) {
    text_ += StrCat(name, "{", labels_, more_labels, "} ", value, "\n");
  }

  std::string labels_;
  std::string text_;
};

void AddRunningSteps(const TaskStatus& status, MetricsPage* page) {
  double oldest = 0;
  double silent = 0;
  for (const StepStatus& step : status.running) {
    oldest = std::max(oldest, InSeconds(step.age));
    if (!step.may_wait) silent = std::max(silent, InSeconds(step.without_progress));
  }
  page->Gauge("cohort_running_steps", "Steps that run on the task now.", status.running.size() + status.more_running);
  page->Gauge("cohort_oldest_step_seconds", "Age of the oldest running step.", oldest);
  page->Gauge("cohort_step_without_progress_seconds",
              "Longest time without progress of a running step that does not wait in a queue.", silent);
}

void AddPeers(const TaskStatus& status, MetricsPage* page) {
  const auto connected = static_cast<uint64_t>(std::ranges::count_if(status.peers, &PeerStatus::connected));
  page->Gauge("cohort_peers_connected", "Tasks and clients that are connected to the task.", connected);
  page->Gauge("cohort_peers_lost", "Tasks of the cluster that were connected to the task and are not now.",
              status.peers.size() - connected);
}

}  // namespace

std::string MetricsText(const TaskStatus& status) {
  MetricsPage page(status.task);
  std::vector<std::pair<std::string, double>> states;
  for (auto state = TaskActivity::kStarting; state <= TaskActivity::kStopping;
       state = static_cast<TaskActivity>(static_cast<int>(state) + 1)) {
    states.emplace_back(TaskActivityText(state), state == status.activity ? 1 : 0);
  }
  page.Gauges("cohort_task_state", "1 for the state that the task is in, else 0.", "state", states);
  page.Gauge("cohort_uptime_seconds", "Age of the task's server.", InSeconds(status.uptime));
  page.Gauge("cohort_restarts", "How often the launcher has started the task again.", status.restarts);
  if (status.global_step) {
    page.Gauge("cohort_global_step", "The global step, on the task that holds it.",
               static_cast<double>(*status.global_step));
  }
  page.Counter("cohort_steps_total", "Parts of steps that have ended on the task.", status.steps);
  page.Gauge("cohort_steps_per_second", "Steps per second over the last seconds.", status.steps_per_second);
  page.Gauges("cohort_time_share", "Share of the last seconds that steps spent on this.", "kind",
              {{"data", status.shares.data}, {"compute", status.shares.compute}, {"wait", status.shares.wait}});
  page.Counter("cohort_sent_bytes_total", "Bytes of messages to other tasks.", status.sent_bytes);
  page.Counter("cohort_received_bytes_total", "Bytes of messages from other tasks.", status.received_bytes);
  page.Gauge("cohort_resident_memory_bytes", "Resident memory of the process.", status.memory_bytes);
  page.Gauge("cohort_sessions", "Sessions that have registered steps on the task.", status.sessions);
  page.Gauge("cohort_variables", "Variables on the task.", status.variables);
  page.Gauge("cohort_variable_bytes", "Bytes of the variables on the task.", status.variable_bytes);
  AddRunningSteps(status, &page);
  AddPeers(status, &page);
  return page.Take();
}

}  // namespace cohort
